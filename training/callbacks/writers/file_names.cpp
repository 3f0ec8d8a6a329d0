#include "training/callbacks/writers/file_names.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <span>

#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {

std::string file_name(const State& state, const std::string& pattern) {
  std::string name = pattern;
  const std::map<std::string, std::string> values = {
      {"{run_name}", state.run_name},
      {"{rank}", std::to_string(state.topology.rank)},
      {"{epoch}", std::to_string(state.timestamp.epoch)},
      {"{batch}", std::to_string(state.timestamp.batch)},
  };
  for (const auto& [field, value] : values) replace_all(name, field, value);
  return name.starts_with('/') ? name : state.run_dir + "/" + name;
}

void write_beside(Disk& disk, const std::string& path, const std::string& text, bool overwrite) {
  warn_if_unwritten([&] {
    const std::filesystem::path pattern(path);
    disk.make_folders(pattern.parent_path());
    const std::string stem = pattern.parent_path() / pattern.stem();
    const auto file =
        disk.open(overwrite ? path : unused_path(disk, stem, pattern.extension()), /*truncate=*/true);
    file->append(std::as_bytes(std::span(text)));
    file->close();
  });
}

void warn_unwritten(const std::string& why) { print_warning(why); }

}  // namespace tutti
