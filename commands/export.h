#pragma once

#include <string>

namespace tutti {

struct ExportOptions {
  std::string path;      // of a checkpoint's or a run's folder
  std::string to;        // a .safetensors file to write, or
  std::string to_hf;     // a folder of Hugging Face's to write: config.json, model.safetensors
  std::string to_peft;   // a folder of PEFT's to write: adapter_config.json, adapter_model.safetensors
  bool trained = false;  // the weights that are trained, also if evaluations use an average of EMA's
};

// `tutti export`: writes a checkpoint's parameters and buffers of evaluations, under their names before
// surgery; LoRA's adapters are merged, or for PEFT written alone. Needs no data, and memory for one tensor.
// For a folder of Hugging Face's, the model must be one of transformers' (models/hub/config.h), without other
// surgery. Returns the text to print. Throws UserError.
std::string export_text(const ExportOptions& options);

}  // namespace tutti
