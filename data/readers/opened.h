#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/readers/options.h"
#include "data/streams/sample_stream.h"
#include "recipe/setting.h"
#include "recipe/wrong_key.h"

namespace tutti {

// The files that exist by a pattern of glob(3), *, ? and [...], in order of their names.
std::vector<std::string> globbed(const std::string& pattern);

// The files that a path with *, ? and [...] names, in order of their names. Throws UserError if no file fits.
std::vector<std::string> files_of(const Setting& path);

// Names that batches have for arrays or columns, and those names of theirs.
using ArrayNames = std::vector<std::pair<std::string, std::string>>;
// Reads a list of names, or a table with batches' names for the data's names.
ArrayNames array_names(const Setting& key);

// Keys that name files, or the command that writes samples.
inline constexpr const char* kFileKeys[] = {"path", "command", "images", "labels", "list"};
// The section's first key of kFileKeys, else of its `sampling`.
const Setting& key_of_data(const Setting& section);

// Throws UserError unless the section has either path or command.
void require_one_source(const Setting& section);

// How a section reads a command's output. Its batch_size is for all ranks together.
SampleStream::Options stream_of(const Setting& section, const StreamOptions& options);

// Throws the error with the line of its key, or of the key that names the file.
[[noreturn]] void fail_at(const Setting& section, const WrongKey& error);
[[noreturn]] void fail_at(const Setting& section, const UserError& error);

// Runs `open`, and adds the recipe's line to its errors.
template <class Open>
DatasetPtr opened(const Setting& section, const Open& open) try {
  return open();
} catch (const WrongKey& error) {
  fail_at(section, error);
} catch (const UserError& error) {
  fail_at(section, error);
}

}  // namespace tutti
