#pragma once

#include <cstdint>
#include <string>

namespace tutti {

struct ExportOptions {
  std::string path;      // of a checkpoint's or a run's folder
  std::string to;        // a .safetensors file to write, or
  std::string to_hf;     // a folder of Hugging Face's to write: config.json, model.safetensors
  std::string to_torch;  // a file for torch.load to write
  std::string to_peft;   // a folder of PEFT's to write: adapter_config.json, adapter_model.safetensors
  std::string layout = "plain";  // of to_torch: "plain", a state dict; "composer": a checkpoint of Composer's
  bool trained = false;          // the weights that are trained, also if evaluations use an average of EMA's
};

inline constexpr uint64_t kMostShardBytes = 5'000'000'000;

// `tutti export`: writes a checkpoint's parameters and buffers of evaluations, under their names before
// surgery; LoRA's adapters are merged, or for PEFT written alone. Needs no data, and memory for one tensor.
// Files of Hugging Face's have at most kMostShardBytes each, as transformers'. For a folder of Hugging
// Face's, the model must be one of transformers' (models/hub/config.h), without other surgery. Returns the
// text to print. Throws UserError.
std::string export_text(const ExportOptions& options);

}  // namespace tutti
