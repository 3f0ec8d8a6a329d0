#pragma once

#include <string>

#include "recipe/setting.h"

namespace tutti {

struct PredictOptions {
  std::string checkpoint;          // a checkpoint's or a run's folder; "" = the run's newest
  std::string evaluator = "eval";  // whose data
  std::string out;                 // the HDF5 file to write
};

// What `tutti predict` does: the model's outputs for every sample of an evaluator's data, in the data's
// order, into an HDF5 file: "output" [samples, ...], or "output/NAME" of outputs with names; float32 of
// numbers with 16 bits. One rank. Runs the events PREDICT_START to PREDICT_END. Returns what it prints.
// Throws UserError.
std::string predict_text(const Setting& recipe, const PredictOptions& options);

}  // namespace tutti
