#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/hdf5/hdf5_listing.h"

namespace tutti {

// A line of a recipe: key = value  # comment
struct RecipeLine {
  std::string key;
  std::string value;  // TOML
  std::string comment = "";
};
using RecipeLines = std::vector<RecipeLine>;

enum class SampleKind {
  kVectors,
  kImages,
  kTokens,        // a next token for each
  kMaskedTokens,  // of Hugging Face's names: a label for each token
  kTextClasses    // of Hugging Face's names: a class for each sequence
};

// The contents of a data file or folder, and the keys of a recipe on this data.
struct FoundData {
  std::string name;   // of the run
  std::string found;  // a line for the reader: "images: uint8 [60000, 28, 28], labels: 10 classes"
  std::vector<std::string> notes = {};  // warnings: files that are left out, ...
  RecipeLines train, eval;  // which data, without batch sizes; no `eval`: no evaluation data
  SampleKind samples = SampleKind::kVectors;
  int64_t count = 0;               // samples to train on
  int64_t classes = 0;             // 0 = not known
  int64_t vocabulary = 0;          // tokens; 0 = not known
  int64_t values = 0;              // in a sample of vectors
  bool copied = false;             // each token's label is the token itself
  std::optional<int64_t> ignored;  // the label below 0
  int64_t height = 0, width = 0;
  int64_t channels = 0;        // 0: images have no dimension of channels
  bool channels_last = false;  // in the file
  int64_t sequence_length = 0;
  bool integers = false;          // the recipe turns them into floats
  bool bytes = false;             // uint8
  std::vector<double> mean, std;  // of their channels, in [0, 1]
  std::string program;            // a model that a program in Python wrote, as TOML; "": one of tutti's own
  bool regression = false;        // targets are numbers, not classes
  bool may_flip = false;          // a mirrored image is of the same class
  bool files = false;  // images are files of sizes of their own; the recipe scales to height and width
};

// Looks into a file or folder; paths in the lines are relative to `recipe_folder`. Throws UserError if
// recipes know no data of this kind, or the data lack what a model needs.
// `tokenizer`: a tokenizer.json or its folder, for texts; "": a tokenizer.json beside the texts, if any.
FoundData look_into(const std::string& data, const std::string& recipe_folder,
                    const std::string& tokenizer = "");

// The built-in random data.
FoundData random_data();

// The parts of look_into: a folder, folders of image files or tar files of images, and a dataset of MosaicML
// Streaming (nullopt for other data); a file or folder of arrays, a table, and texts.
std::optional<FoundData> look_into_folder(const std::string& folder, const std::string& recipe_folder);
std::optional<FoundData> look_into_images(const std::string& path, const std::string& recipe_folder);
std::optional<FoundData> look_into_mds(const std::string& path, const std::string& recipe_folder);
FoundData look_into_arrays(const std::string& file, const std::string& recipe_folder);
FoundData look_into_table(const std::string& file, const std::string& recipe_folder,
                          const std::string& tokenizer);
FoundData look_into_texts(const std::string& file, const std::string& recipe_folder,
                          const std::string& tokenizer);

// True if the file is named as a table is.
bool is_table(const std::string& file);

// A text of any name as a table: most of its lines have as many cells, which are mostly numbers.
struct SniffedTable {
  char delimiter = ',';
  bool first_is_row = false;  // and has no names
};
// Nullopt: it is none. Throws UserError of a table that needs another form.
std::optional<SniffedTable> sniff_table(const std::string& file);

// As list_hdf5 and first_rows, of an .npz file or a folder of .npy files.
bool is_numpy(const std::string& path);
std::vector<ListedArray> list_numpy(const std::string& path);
std::vector<double> first_numpy_rows(const std::string& path, const ListedArray& array, int64_t rows);

// A length of samples that leaves enough samples in a tenth of the tokens. Throws UserError if there is none.
int64_t sequence_for(int64_t tokens, const std::string& file);

// A vocabulary for tokens below `end`: in steps of 64, for fast matrix products.
inline int64_t vocabulary_for(int64_t end) { return (end + 63) / 64 * 64; }

// A text as TOML.
std::string toml_text(const std::string& text);

// The path, as TOML, in a recipe in that folder. Throws UserError if it is not UTF-8.
std::string recipe_path(const std::string& path, const std::string& recipe_folder);

// Photographs of many sizes: with ImageNet's mean and standard deviation, which photographs' are near. Their
// lines, count and classes are still to be set.
FoundData photographs_in(const std::string& place, const std::string& found);

// Sets mean and standard deviation of bytes, the channels of a pixel next to each other or in planes of
// `plane` pixels (0: next to each other).
void measure_pixels(FoundData& found, std::span<const uint8_t> pixels, int64_t channels, int64_t plane = 0);

}  // namespace tutti
