#include "data/readers/opened.h"

#include <glob.h>

#include <filesystem>

#include "recipe/command_keys.h"

namespace tutti {
namespace {

// Of a batch whose size is not known.
constexpr int64_t kUsualBatch = 256;

// Batches that are read beyond those loaded ahead: the one that is trained on, and that of another rank of
// this process, which may be behind.
constexpr int64_t kMoreBatches = 2;

}  // namespace

std::vector<std::string> globbed(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t matches{};
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0)
    files.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  globfree(&matches);
  return files;
}

std::vector<std::string> files_of(const Setting& path) {
  std::vector<std::string> files = globbed(path.text());
  if (files.empty())
    path.fail("no such file" +
              (path.is_override()
                   ? ": " + std::filesystem::absolute(path.text()).lexically_normal().string() +
                         "; paths begin in the folder of the recipe; of a run, in the run's folder"
                   : std::string()));
  return files;
}

void require_one_source(const Setting& section) {
  const bool has_path = section.has("path"), has_command = section.has("command");
  if (has_path && has_command) section.at("command").fail_key("excludes path; keep one of the two");
  if (!has_path && !has_command) section.at("kind").fail("expected path, or command in its place");
}

const Setting& key_of_data(const Setting& section) {
  for (const char* key : kFileKeys)
    if (section.has(key)) return section.at(key);
  return section.at("sampling");
}

SampleStream::Options stream_of(const Setting& section, const StreamOptions& options) {
  require_whole_command(section.at("command"));
  const DataSettings loading = DataSettings::read(section);
  const int64_t batch = loading.batch_size->value_or(kUsualBatch);
  // Of a block, any sample may be the next; a batch may begin in one and end in the next.
  const int64_t blocks = loading.shuffle ? 2 * options.shuffle_buffer : 0;
  return {.command = options.command,
          .epoch_samples = options.epoch_samples,
          .shuffle_buffer = options.shuffle_buffer,
          .kept = blocks + (loading.prefetch + kMoreBatches) * batch};
}

void fail_at(const Setting& section, const WrongKey& error) {
  const Setting& key = section.at(section.has(error.key) ? error.key : "path");
  const Setting* entry = key.is_table() ? key.find(error.entry) : nullptr;
  const bool names_file = !error.position().file.empty();
  (entry ? *entry : key)
      .fail(names_file ? section.at("path").as_written() + ": " + error.message() : error.message());
}

void fail_at(const Setting& section, const UserError& error) {
  section.at(section.has("command") ? "command" : "path").fail(error);
}

ArrayNames array_names(const Setting& key) {
  ArrayNames names;
  if (!key.is_table())
    for (const std::string& name : key.texts()) names.emplace_back(name, name);
  else
    for (const auto& [name, stored] : key.table()) names.emplace_back(name, stored.text());
  return names;
}

}  // namespace tutti
