#pragma once

#include "data/dataset.h"
#include "data/readers/options.h"
#include "recipe/setting.h"

namespace tutti {

// True for a [data.eval] that is a share of [data.train].
bool is_split(const Setting& section);

// The two parts of the training data, each with the transforms of its section. `eval`: [data.eval] with the
// keys of [data.train] that say what its samples are. The transforms of [data.eval] are its own; without any,
// those of [data.train] that draw nothing, and mask_tokens.
struct SplitData {
  DatasetPtr train, held_out;
  Setting eval;
};

// Opens the training data and divides them, by held_out_samples. Samples cut from a sequence of tokens are
// held out in blocks of neighbours. Tables are fitted on the training part. `given`: the samples of a program
// or plugin; null: those of the section. `environment.fitted`: as of evaluation data; nullopt: of the
// training part. Throws UserError with the key.
SplitData open_split(const Setting& train, const Setting& eval, const DatasetPtr& given,
                     const DataEnvironment& environment);

}  // namespace tutti
