#pragma once

#include <string>

namespace tutti::script {

// Looks at a file of torch.jit.save before libtorch loads it. Loading runs code of the file: __setstate__ of
// its classes, defaults of arguments, and operators on constants, which libtorch computes ahead. It also
// takes sizes of tensors as they are, and makes objects of any class of libtorch's. Throws UserError for a
// file that does more than name plain classes, tensors within their records, and code that runs later.
void require_plain_archive(const std::string& path);

}  // namespace tutti::script
