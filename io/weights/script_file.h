#pragma once

#include <string>
#include <vector>

namespace tutti {

struct ScriptCode {
  std::string record;  // "code/__torch__/net.py"
  std::string text;
};

// The code of a file of torch.jit.save, read before libtorch loads the file: libtorch trusts sizes of
// tensors, and makes objects of any class of its own. Throws UserError with the file unless its objects are
// the file's own, of plain values and of tensors that lie within their records.
std::vector<ScriptCode> read_script_code(const std::string& path);

}  // namespace tutti
