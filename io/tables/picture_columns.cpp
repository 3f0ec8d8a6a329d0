#include "io/tables/picture_columns.h"

#include <filesystem>

#include "io/image_folders.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLookedAt = 20;  // rows

struct LastRow {};  // thrown at the last row to look at: a table may have millions

bool is_picture(const std::string& root, std::string_view cell) {
  std::error_code ignored;
  return is_image_name(cell) && fs::is_regular_file(fs::path(root) / cell, ignored);
}

}  // namespace

std::string folder_of_table(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::vector<std::string> picture_columns(TableFile& file, const std::string& root) {
  std::vector<WantedColumn> texts;
  for (std::size_t c = 0; c < file.columns().size(); ++c)
    if (file.columns()[c].is_text && !file.columns()[c].is_other) texts.push_back({c, CellType::kText});
  if (texts.empty()) return {};
  std::vector<bool> has_picture(texts.size());
  int64_t rows = 0;
  try {
    file.read(texts, [&](auto, auto cells) {
      for (std::size_t c = 0; c < cells.size(); ++c)
        if (cells[c].data() && is_picture(root, cells[c])) has_picture[c] = true;
      if (++rows == kLookedAt) throw LastRow();
    });
  } catch (const LastRow&) {
  }
  std::vector<std::string> names;
  for (std::size_t c = 0; c < texts.size(); ++c)
    if (has_picture[c]) names.push_back(file.columns()[texts[c].column].name);
  return names;
}

}  // namespace tutti
