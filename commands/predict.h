#pragma once

#include <cstdint>
#include <string>

#include "recipe/toml_reader.h"

namespace tutti {

struct PredictOptions {
  RecipeFile recipe = {};
  std::string checkpoint;          // a checkpoint's or a run's folder; "" = the run's newest
  std::string evaluator = "eval";  // the label of the evaluator with the data
  std::string data;   // in place of the evaluator's path; "-": texts from standard input; "": its own
  std::string out;    // path of the file to write; "-": standard output
  int64_t top_k = 0;  // more classes of each row, for tables
};

// `tutti predict`: writes the model's outputs for all samples of an evaluator, in the data's order, to a file
// of the kind that its ending names. .h5, .hdf5: "output" [samples, ...], or "output/NAME" for named outputs,
// with float32 for 16-bit floats. If the data of the training or the evaluator name the classes
// (data/readers/class_names.h), outputs with a score for each have the attribute "class_names", a line each.
// .csv, .jsonl, .parquet: a row a sample, written as they come: "file", or "row" (from 1), then the columns
// of commands/predictions/output_table.h. Targets in the data, and the data of the training, may be missing
// (commands/prediction_job.h). On one rank. Runs the events PREDICT_START to PREDICT_END. Returns the text to
// print, or "" where standard output has the rows, and standard error the text. Throws UserError.
std::string predict_text(const Setting& recipe, const PredictOptions& options);

}  // namespace tutti
