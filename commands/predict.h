#pragma once

#include <string>

#include "recipe/toml_reader.h"

namespace tutti {

struct PredictOptions {
  RecipeFile recipe = {};
  std::string checkpoint;          // a checkpoint's or a run's folder; "" = the run's newest
  std::string evaluator = "eval";  // the label of the evaluator with the data
  std::string out;                 // path of the HDF5 file to write
};

// `tutti predict`: writes the model's outputs for all samples of an evaluator, in the data's order, to an
// HDF5 file: "output" [samples, ...], or "output/NAME" for named outputs. 16-bit floats become float32. If
// the data of the training or the evaluator name the classes (data/readers/class_names.h), outputs with a
// score for each have the attribute "class_names", a line each. Targets in the data, and the data of the
// training, may be missing (commands/prediction_job.h). On one rank. Runs the events PREDICT_START to
// PREDICT_END. Returns the text to print. Throws UserError.
std::string predict_text(const Setting& recipe, const PredictOptions& options);

}  // namespace tutti
