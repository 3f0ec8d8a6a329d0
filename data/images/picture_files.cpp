#include "data/images/picture_files.h"

#include <sys/stat.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 31;
constexpr int64_t kLookedAtForDigest = 16;

}  // namespace

std::string picture_file(const std::string& folder, const std::string& path) {
  return path.starts_with('/') ? path : folder + '/' + path;
}

void PictureFiles::add(const std::string& path) {
  paths_ += path;
  ends_.push_back(paths_.size());
}

std::string PictureFiles::path(int64_t index) const {
  const auto i = static_cast<std::size_t>(index);
  const std::size_t first = i == 0 ? 0 : ends_[i - 1];
  return paths_.substr(first, ends_[i] - first);
}

std::string PictureFiles::file(int64_t index) const { return picture_file(folder_, path(index)); }

std::span<const std::byte> PictureFiles::read(int64_t index, std::vector<std::byte>& buffer) const {
  const RegularFile opened(file(index), kMostFileBytes);
  if (!opened.problem().empty()) throw UserError(opened.problem());
  buffer.resize(opened.size());
  try {
    std::size_t done = 0, count = 1;
    for (; done < buffer.size() && count > 0; done += count)
      count = opened.read(reinterpret_cast<char*>(buffer.data()) + done, buffer.size() - done);
    buffer.resize(done);
  } catch (const OperatingError& error) {
    throw UserError(error.message());
  }
  return buffer;
}

uint64_t PictureFiles::digest() const {
  const int64_t looked_at = std::min(kLookedAtForDigest, size());
  auto sizes = static_cast<uint64_t>(size());
  for (int64_t i = 0; i < looked_at; ++i) {
    struct stat facts {};
    if (stat(file(i * size() / looked_at).c_str(), &facts) != 0) continue;
    const auto bytes = static_cast<uint64_t>(facts.st_size);
    sizes = XXH3_64bits_withSeed(&bytes, sizeof bytes, sizes);
  }
  return XXH3_64bits_withSeed(paths_.data(), paths_.size(), sizes);
}

}  // namespace tutti
