#pragma once

#include <cstdint>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// A number for each sample, equal where the samples have an equal value of the column or array that
// `split_by` names. `train`: a section of hdf5, numpy or mds with so many samples. Throws UserError with the
// key, also for kinds without columns.
std::vector<int64_t> groups_by(const Setting& train, const Setting& split_by, int64_t samples);

// The number of each sample in a column of a table or of mds, or an array, float64. Throws as groups_by.
std::vector<double> numbers_in(const Setting& train, const Setting& column, int64_t ignore_index);

// The rows of tables that are held out as [data.eval], a split of [data.train], says. Classes keep their
// shares if the target is a class. Throws UserError with the key.
std::vector<bool> held_out_rows(const Setting& train, const Setting& eval, int64_t ignore_index);

}  // namespace tutti
