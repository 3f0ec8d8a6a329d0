#pragma once

#include <string>

namespace tutti {

// What `tutti inspect` prints of a checkpoint's or a run's folder (then its newest good checkpoint): where
// training stood and every tensor with dtype and shape. Throws UserError when there is no good checkpoint.
std::string inspect_text(const std::string& path);

// One hash of all whole parameters and buffers in name order, 16 hexadecimal digits: the same for every world
// size.
std::string inspect_digest(const std::string& path);

}  // namespace tutti
