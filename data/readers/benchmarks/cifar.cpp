#include "data/readers/benchmarks/cifar.h"

#include <filesystem>

#include "data/readers/benchmarks/image_dataset.h"
#include "data/readers/opened.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using CifarLabels = CifarOptions::Labels;

constexpr int64_t kCifarEdge = 32;
constexpr int64_t kCifarImageBytes = 3 * kCifarEdge * kCifarEdge;
constexpr int64_t kMostImages = 500'000;  // in a compressed file; CIFAR-100 has 50,000

std::vector<std::string> cifar_names(const CifarOptions& options) {
  if (options.labels != CifarLabels::kTen) return {options.test ? "test.bin" : "train.bin"};
  if (options.test) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int i = 1; i <= 5; ++i) names.push_back("data_batch_" + std::to_string(i) + ".bin");
  return names;
}

std::vector<std::string> cifar_files(const CifarOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.path, ignored)) return {options.path};
  std::string folder = options.path;
  const std::string archive_folder =
      folder + (options.labels == CifarLabels::kTen ? "/cifar-10-batches-bin" : "/cifar-100-binary");
  if (std::filesystem::is_directory(archive_folder, ignored)) folder = archive_folder;
  std::vector<std::string> files;
  for (const std::string& name : cifar_names(options)) files.push_back(plain_or_gzip(folder + "/" + name));
  return files;
}

// A record is one label, or CIFAR-100's coarse and fine ones, and an image.
ImageDataset::Part cifar_part(const std::string& path, CifarLabels labels) {
  const int64_t label_bytes = labels == CifarLabels::kTen ? 1 : 2;
  const int64_t record = label_bytes + kCifarImageBytes;
  const auto most = [&](std::span<const std::byte>) { return static_cast<uint64_t>(kMostImages * record); };
  const auto file = std::make_shared<const GzipFile>(path, most);
  const auto size = static_cast<int64_t>(file->bytes().size());
  if (file->is_cut())
    throw UserError({path}, "holds more than " + std::to_string(kMostImages) +
                                " images uncompressed; uncompress it, and name the plain file");
  if (size == 0 || size % record != 0)
    throw UserError({path}, "has " + std::to_string(size) + " bytes; expected records of " +
                                std::to_string(record) + ": the one that begins at byte " +
                                std::to_string(size / record * record) + " is cut");
  const int64_t label = labels == CifarLabels::kFine ? 1 : 0;
  return {{file, label_bytes, record}, {file, label, record}, size / record};
}

}  // namespace

DatasetPtr open_cifar(const CifarOptions& options) {
  std::vector<ImageDataset::Part> parts;
  for (const std::string& file : cifar_files(options)) parts.push_back(cifar_part(file, options.labels));
  const int64_t classes = options.labels == CifarLabels::kTen    ? 10
                          : options.labels == CifarLabels::kFine ? 100
                                                                 : 20;
  const ImageDataset::Layout layout{
      .height = kCifarEdge, .width = kCifarEdge, .channels = 3, .planar = true, .classes = classes};
  return std::make_shared<const ImageDataset>(layout, std::move(parts));
}

DatasetPtr Cifar10Options::make(const Setting& section, const DataEnvironment&) const {
  return opened(section, [&] { return open_cifar({path, CifarLabels::kTen, test}); });
}

DatasetPtr Cifar100Options::make(const Setting& section, const DataEnvironment&) const {
  const CifarLabels labels = coarse ? CifarLabels::kCoarse : CifarLabels::kFine;
  return opened(section, [&] { return open_cifar({path, labels, test}); });
}

}  // namespace tutti
