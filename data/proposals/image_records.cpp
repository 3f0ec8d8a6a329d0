#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/proposals/look.h"
#include "io/formats/file_head.h"
#include "io/formats/gzip_file.h"
#include "runtime/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPixelBytes = 1 << 20;  // of images that are looked at
constexpr std::size_t kMostLabelBytes = 1 << 22;
constexpr int64_t kMostChannels = 1024;

bool is_there(const fs::path& file) { return fs::exists(plain_or_gzip(file)); }

RecipeLines split_lines(const std::string& kind, const std::string& folder, const std::string& split,
                        const std::string& comment = "") {
  return {{"kind", toml_text(kind), comment}, path_line(folder), {"split", toml_text(split)}};
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
Proposal cifar(const std::string& folder, bool ten) {
  constexpr int64_t kEdge = 32;
  const std::string kind = ten ? "cifar10" : "cifar100";
  const int64_t count = cifar_images(folder, ten);
  const std::string text =
      std::to_string(count) + " images uint8 [32, 32, 3] of " + (ten ? "10" : "100") + " classes";
  return {.name = kind,
          .summary = text,
          .train = split_lines(kind, folder, "train", text),
          .eval = split_lines(kind, folder, "test"),
          .numbers = ten ? pixel_lines({0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616})
                         : pixel_lines({0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}),
          .count = count,
          .samples = ImageSamples{.height = kEdge, .width = kEdge, .have_channels = true, .may_flip = true}};
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

Proposal idx_images(const std::string& folder, const std::string& images, const std::string& labels) {
  const std::vector<int64_t> sizes = idx_sizes(images);
  if ((sizes.size() != 3 && sizes.size() != 4) || (sizes.size() == 4 && sizes[3] > kMostChannels))
    throw UserError({images}, "no IDX file of images: bytes [samples, height, width], or with up to " +
                                  std::to_string(kMostChannels) + " channels");
  const std::vector<uint8_t> values = idx_bytes(labels, idx_sizes(labels), kMostLabelBytes);
  const int classes = values.empty() ? 0 : *std::ranges::max_element(values) + 1;
  const int64_t channels = sizes.size() == 4 ? sizes[3] : 1;
  return {.name = last_name(folder),
          .summary = std::to_string(sizes[0]) + " images uint8 [" + std::to_string(sizes[1]) + ", " +
                     std::to_string(sizes[2]) + ", " + std::to_string(channels) + "] of " +
                     std::to_string(classes) + " classes",
          .numbers = measured_pixel_lines(idx_bytes(images, sizes, kPixelBytes), channels),
          .count = sizes[0],
          .samples = ImageSamples{.height = sizes[1], .width = sizes[2], .have_channels = true}};
}

}  // namespace

std::optional<Proposal> look_at_cifar(const std::string& folder) {
  const fs::path path = folder;
  if (is_there(path / "data_batch_1.bin") || is_there(path / "cifar-10-batches-bin/data_batch_1.bin"))
    return cifar(folder, true);
  const bool is_hundred = is_there(path / "train.bin") && is_there(path / "test.bin");
  if (is_hundred || is_there(path / "cifar-100-binary/train.bin")) return cifar(folder, false);
  return std::nullopt;
}

std::optional<Proposal> look_at_mnist(const std::string& folder) {
  for (const char* below : {"", "raw", "MNIST/raw"})
    for (const std::string dot : {"-", "."}) {
      const fs::path raw = fs::path(folder) / below;
      const fs::path images = raw / ("train-images" + dot + "idx3-ubyte");
      const fs::path labels = raw / ("train-labels" + dot + "idx1-ubyte");
      if (!is_there(images) || !is_there(labels)) continue;
      Proposal proposal = idx_images(folder, plain_or_gzip(images), plain_or_gzip(labels));
      proposal.train = split_lines("mnist", folder, "train", proposal.summary);
      if (is_there(raw / ("t10k-images" + dot + "idx3-ubyte")))
        proposal.eval = split_lines("mnist", folder, "test");
      return proposal;
    }
  return std::nullopt;
}

std::optional<Proposal> look_at_idx(const std::string& folder) {
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
  Proposal proposal = idx_images(folder, images, labels);
  proposal.train = {{"kind", "\"idx\"", proposal.summary},
                    path_line(images, "relative to this file", "images"),
                    path_line(labels, "", "labels")};
  return proposal;
}

}  // namespace tutti
