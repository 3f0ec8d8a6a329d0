#include "data/tokenizers/tokenizer_files.h"

#include <filesystem>

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "tokenizer.json";

}  // namespace

std::string tokenizer_file(const std::string& tokenizer) {
  return fs::is_directory(tokenizer) ? tokenizer + '/' + kFile : tokenizer;
}

void copy_tokenizer_files(Disk& disk, const std::string& tokenizer, const std::string& folder) {
  const fs::path from = tokenizer_file(tokenizer);
  const auto copy = [&](const fs::path& path, const char* name) {
    if (!fs::is_regular_file(path)) return;
    const auto file = disk.open(folder + '/' + name, true);
    file->append(disk.read(path.string()));
    file->close();
  };
  copy(from, kFile);
  for (const char* beside : {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"})
    copy(from.parent_path() / beside, beside);
}

}  // namespace tutti
