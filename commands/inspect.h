#pragma once

#include <string>

namespace tutti {

struct InspectOptions {
  std::string path;     // of a checkpoint's or a run's folder
  bool digest = false;  // only inspect_digest
};

// The output of `tutti inspect` for the folder of a checkpoint, or of a run (its newest good checkpoint): the
// time of training, and every tensor with dtype and shape. Throws UserError if there is no good checkpoint.
std::string inspect_text(const std::string& path);

// A hash of all parameters and buffers in name order, 16 hexadecimal digits. The same for every world size.
std::string inspect_digest(const std::string& path);

}  // namespace tutti
