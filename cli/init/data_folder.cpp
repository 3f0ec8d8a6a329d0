#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/init/look.h"
#include "io/formats/file_head.h"
#include "runtime/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPixelBytes = 1 << 20;  // of images that are looked at
constexpr std::size_t kMostLabelBytes = 1 << 22;
constexpr int64_t kMostChannels = 1024;

bool is_there(const fs::path& file) { return fs::exists(file) || fs::exists(file.string() + ".gz"); }

std::string name_of(const std::string& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename();
}

RecipeLines split_lines(const FoundData& data, const std::string& kind, const std::string& folder,
                        const std::string& recipe_folder, const char* split) {
  return {{"kind", toml_text(kind), std::string(split) == "train" ? data.found : ""},
          {"path", recipe_path(folder, recipe_folder), "relative to this file"},
          {"split", toml_text(split)}};
}

constexpr int64_t kRecord10 = 3073, kRecord100 = 3074;  // bytes of an image with its labels

int64_t records_in(const fs::path& file, int64_t record) {
  std::error_code missing;
  const auto size = fs::file_size(file, missing);
  return missing ? 0 : static_cast<int64_t>(size) / record;
}

// Images to train on; those of the original where all files are compressed.
int64_t cifar_images(const fs::path& folder, bool ten) {
  int64_t images = 0;
  for (const char* below : {"", "cifar-10-batches-bin", "cifar-100-binary"}) {
    if (!ten) images += records_in(folder / below / "train.bin", kRecord100);
    for (int i = 1; ten && i <= 5; ++i)
      images += records_in(folder / below / ("data_batch_" + std::to_string(i) + ".bin"), kRecord10);
  }
  return images > 0 ? images : 50000;
}

// The mean and standard deviation that papers use for CIFAR.
FoundData cifar(const std::string& folder, const std::string& recipe_folder, bool ten) {
  FoundData data{.name = ten ? "cifar10" : "cifar100", .samples = SampleKind::kImages};
  data.count = cifar_images(folder, ten);
  data.found =
      std::to_string(data.count) + " images uint8 [32, 32, 3] of " + (ten ? "10" : "100") + " classes";
  data.classes = ten ? 10 : 100;
  data.height = data.width = 32;
  data.bytes = data.integers = data.may_flip = true;
  data.mean = ten ? std::vector{0.4914, 0.4822, 0.4465} : std::vector{0.5071, 0.4865, 0.4409};
  data.std = ten ? std::vector{0.2470, 0.2435, 0.2616} : std::vector{0.2673, 0.2564, 0.2762};
  data.train = split_lines(data, data.name, folder, recipe_folder, "train");
  data.eval = split_lines(data, data.name, folder, recipe_folder, "test");
  return data;
}

// The sizes in the header of an IDX file of bytes, each at least 1; empty for other files.
std::vector<int64_t> idx_sizes(const std::string& file) {
  const std::vector<uint8_t> head = file_head(file, 4 + 4 * 8);
  if (head.size() < 8 || head[0] != 0 || head[1] != 0 || head[2] != 8) return {};
  std::vector<int64_t> sizes;
  for (std::size_t at = 4; sizes.size() < head[3] && at + 4 <= head.size(); at += 4)
    sizes.push_back(int64_t{head[at]} << 24 | head[at + 1] << 16 | head[at + 2] << 8 | head[at + 3]);
  const bool is_whole = sizes.size() == head[3] && std::ranges::count(sizes, 0) == 0;
  return is_whole ? sizes : std::vector<int64_t>();
}

std::vector<uint8_t> idx_bytes(const std::string& file, const std::vector<int64_t>& sizes, std::size_t most) {
  const std::size_t header = 4 + 4 * sizes.size();
  std::vector<uint8_t> bytes = file_head(file, header + most);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(header, bytes.size())));
  return bytes;
}

FoundData idx_images(const std::string& images, const std::string& labels) {
  const std::vector<int64_t> sizes = idx_sizes(images);
  if ((sizes.size() != 3 && sizes.size() != 4) || (sizes.size() == 4 && sizes[3] > kMostChannels))
    throw UserError({images}, "no IDX file of images: bytes [samples, height, width], or with up to " +
                                  std::to_string(kMostChannels) + " channels");
  FoundData data{.samples = SampleKind::kImages, .count = sizes[0], .height = sizes[1], .width = sizes[2]};
  const std::vector<uint8_t> classes = idx_bytes(labels, idx_sizes(labels), kMostLabelBytes);
  data.classes = classes.empty() ? 0 : *std::ranges::max_element(classes) + 1;
  const int64_t channels = sizes.size() == 4 ? sizes[3] : 1;
  measure_pixels(data, idx_bytes(images, sizes, kPixelBytes), channels);
  data.found = std::to_string(sizes[0]) + " images uint8 [" + std::to_string(sizes[1]) + ", " +
               std::to_string(sizes[2]) + ", " + std::to_string(channels) + "] of " +
               std::to_string(data.classes) + " classes";
  return data;
}

std::string plain_or_compressed(const fs::path& file) {
  return fs::exists(file) ? file.string() : file.string() + ".gz";
}

std::optional<FoundData> mnist(const std::string& folder, const std::string& recipe_folder) {
  for (const char* below : {"", "raw", "MNIST/raw"})
    for (const char* dot : {"-", "."}) {
      const fs::path images = fs::path(folder) / below / (std::string("train-images") + dot + "idx3-ubyte");
      const fs::path labels = fs::path(folder) / below / (std::string("train-labels") + dot + "idx1-ubyte");
      if (!is_there(images) || !is_there(labels)) continue;
      FoundData data = idx_images(plain_or_compressed(images), plain_or_compressed(labels));
      data.name = name_of(folder);
      data.train = split_lines(data, "mnist", folder, recipe_folder, "train");
      const fs::path test = fs::path(folder) / below / (std::string("t10k-images") + dot + "idx3-ubyte");
      if (is_there(test)) data.eval = split_lines(data, "mnist", folder, recipe_folder, "test");
      return data;
    }
  return std::nullopt;
}

RecipeLines idx_lines(const std::string& images, const std::string& labels, const std::string& found,
                      const std::string& recipe_folder) {
  return {{"kind", "\"idx\"", found},
          {"images", recipe_path(images, recipe_folder), "relative to this file"},
          {"labels", recipe_path(labels, recipe_folder)}};
}

// The one pair of images and as many labels among the files of a folder.
std::optional<FoundData> idx_pair(const std::string& folder, const std::string& recipe_folder) {
  std::string images, labels;
  for (const auto& file : fs::directory_iterator(folder)) {
    const std::string path = file.path().string();
    if (!file.is_regular_file() || path.find("idx") == std::string::npos) continue;
    const std::size_t dims = idx_sizes(path).size();
    if (dims != 1 && dims != 3 && dims != 4) continue;
    std::string& place = dims == 1 ? labels : images;
    if (!place.empty()) return std::nullopt;
    place = path;
  }
  if (images.empty() || labels.empty()) return std::nullopt;
  FoundData data = idx_images(images, labels);
  data.name = name_of(folder);
  data.train = idx_lines(images, labels, data.found, recipe_folder);
  return data;
}

}  // namespace

std::optional<FoundData> look_into_folder(const std::string& folder, const std::string& recipe_folder) {
  const fs::path path = folder;
  if (is_there(path / "data_batch_1.bin") || is_there(path / "cifar-10-batches-bin/data_batch_1.bin"))
    return cifar(folder, recipe_folder, true);
  const bool hundred = is_there(path / "train.bin") && is_there(path / "test.bin");
  if (hundred || is_there(path / "cifar-100-binary/train.bin")) return cifar(folder, recipe_folder, false);
  if (auto found = mnist(folder, recipe_folder)) return found;
  return idx_pair(folder, recipe_folder);
}

}  // namespace tutti
