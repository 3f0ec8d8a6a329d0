#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tutti {

// A line of a recipe: key = value  # comment
struct RecipeLine {
  std::string key;
  std::string value;  // TOML; or a path as it is, which a recipe names from its own folder
  std::string comment = "";
  bool is_path = false;
};
using RecipeLines = std::vector<RecipeLine>;

// What a sample is, as far as the choice of a model depends on it.
struct VectorSamples {};
enum class ImageTargets { kClass, kValues, kMask };
struct ImageSamples {
  int64_t height = 0, width = 0;
  bool have_channels = false;  // as floats
  bool may_flip = false;       // a mirrored image is of the same class
  bool are_files = false;      // of sizes of their own, which the recipe scales
  ImageTargets targets = ImageTargets::kClass;
};
struct TokenSamples {  // a next token for each
  int64_t sequence_length = 0;
  int64_t vocabulary = 0;
  bool are_copied = false;  // each token's label is the token itself
};
struct MaskedTokenSamples {  // of Hugging Face's names: a label for each token
  int64_t sequence_length = 0;
  int64_t vocabulary = 0;
};
struct TextSamples {  // a class for each text
  int64_t sequence_length = 0;
  int64_t vocabulary = 0;
  int64_t classes = 0;  // 0: a number for each
};
using Samples = std::variant<VectorSamples, ImageSamples, TokenSamples, MaskedTokenSamples, TextSamples>;

// A recipe's part about a data file or folder.
struct Proposal {
  std::string name;                       // of the run
  std::string summary;                    // a line for the reader: "images: uint8 [60000, 28, 28]"
  std::vector<std::string> remarks = {};  // warnings: files that are left out, ...
  RecipeLines train = {}, eval = {};      // which data, without batch sizes; no `eval`: no evaluation data
  RecipeLines numbers = {};               // of both: how stored numbers become the floats that models take
  RecipeLines model = {};                 // keys of any model: its loss, ...
  std::vector<std::string> metrics = {};  // of evaluations, by name; empty: the model's own
  int64_t count = 0;                      // samples to train on
  Samples samples = VectorSamples{};
};

RecipeLine path_line(const std::string& path, const std::string& comment = "relative to this file",
                     const std::string& key = "path");

// What the numbers of a target are, and that they are normalized.
RecipeLine target_type_line(bool are_values);
RecipeLine normalized_target_line();

// Texts, numbers and lists as TOML; of a single number, the number.
std::string toml_text(const std::string& text);
std::string toml_texts(const std::vector<std::string>& texts);
std::string toml_number(double value);
std::string toml_numbers(const std::vector<double>& values);

// The name of a folder or file, also of "." and of one that ends in a slash.
std::string last_name(const std::string& path);

// A vocabulary for tokens below `end`: in steps of 64, for fast matrix products.
inline int64_t vocabulary_for(int64_t end) { return (end + 63) / 64 * 64; }

// How many samples each class has.
using ClassSizes = std::vector<std::pair<std::string, int64_t>>;

// A line if a class has several times as many samples as another, which are called `samples`; "" = none.
std::string imbalance_text(const ClassSizes& sizes, const std::string& samples);

// A length of samples that leaves enough samples in a tenth of the tokens. Throws UserError if there is none.
int64_t sequence_for(int64_t tokens, const std::string& file);

// Mean and standard deviation of each channel, in [0, 1], for floats made of bytes.
RecipeLines pixel_lines(const std::vector<double>& mean, const std::vector<double>& deviation);
// The same, measured: the channels of a pixel are next to each other, or in planes of `plane` pixels.
RecipeLines measured_pixel_lines(std::span<const uint8_t> pixels, int64_t channels, int64_t plane = 0);

// Photographs of many sizes: with ImageNet's mean and standard deviation, which photographs' are near. The
// lines and the count are still to be set.
Proposal photographs_in(const std::string& path, const std::string& summary);

}  // namespace tutti
