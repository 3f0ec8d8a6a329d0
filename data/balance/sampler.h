#pragma once

#include "data/dataset.h"
#include "recipe/setting.h"

namespace tutti {

// The training data in the way that `sampler` of [data.train] draws them; the same data without the key.
// `eval`: [data.eval], which may hold a share of a table's rows out. Throws UserError with the key.
DatasetPtr with_sampler(const DatasetPtr& data, const Setting& train, const Setting& eval,
                        int64_t ignore_index);

}  // namespace tutti
