#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/arrays/hdf5_dataset.h"
#include "data/dataset.h"
#include "data/readers/options.h"
#include "data/readers/token_dataset.h"
#include "data/streams/sample_stream.h"
#include "data/tables/table_dataset.h"
#include "recipe/setting.h"

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

// Runs `open`, and adds the recipe's line that names the file, or the missing group, arrays or columns, to
// its errors.
template <class Open>
DatasetPtr opened(const Setting& section, const Open& open) try {
  return open();
} catch (const MissingArrays& error) {
  const Setting& key = section.at(error.option);
  const Setting* named = key.is_table() ? key.find(error.array) : nullptr;
  (named ? *named : key).fail(section.at("path").as_written() + ": " + error.message());
} catch (const WrongColumns& error) {
  section.at(section.has(error.option) ? error.option : "path").fail(error.message());
} catch (const WrongTokenType& error) {
  section.at("dtype").fail(error);
} catch (const UserError& error) {
  section.at(section.has("command") ? "command" : "path").fail(error);
}

}  // namespace tutti
