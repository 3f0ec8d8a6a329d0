#pragma once

#include <string>

#include "runtime/disk.h"

namespace tutti {

// The tokenizer.json that a recipe's `tokenizer` names: the file, or its folder.
std::string tokenizer_file(const std::string& tokenizer);

// Copies tokenizer.json, and tokenizer_config.json, special_tokens_map.json and chat_template.jinja of its
// folder, if any, into `folder`. Throws OperatingError.
void copy_tokenizer_files(Disk& disk, const std::string& tokenizer, const std::string& folder);

}  // namespace tutti
