#include "data/arrays/numpy_arrays.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "io/formats/npy.h"
#include "io/formats/zip_file.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".npy";

// Bytes of a .npy file, and what keeps them.
using Content = ZipFile::Content;

// The arrays of an .npz archive, or of a folder of .npy files, by their names.
class ArrayFiles {
 public:
  explicit ArrayFiles(const std::string& path) : path_(path) {
    if (!fs::is_directory(path)) {
      if (is_npy(MappedFile(path).bytes()))
        throw UserError({path}, "a single array (.npy): path is an .npz file, or a folder of .npy files");
      archive_.emplace(path);
      for (const ZipFile::Member& member : archive_->members())
        if (member.name.ends_with(kEnding)) names_.push_back(stem(member.name));
    } else {
      for (const auto& entry : fs::directory_iterator(path))
        if (entry.path().extension() == kEnding) names_.push_back(entry.path().stem().string());
    }
    std::ranges::sort(names_);
    if (names_.empty())
      throw UserError({path}, "no arrays of numpy: an .npz file, or .npy files in a folder");
  }

  const std::vector<std::string>& names() const { return names_; }

  // "" in an archive, where `where` names the array.
  std::string file_of(const std::string& name) const {
    return archive_ ? path_ : (fs::path(path_) / (name + std::string(kEnding))).string();
  }

  // Throws UserError, too, if a member of an archive is much longer than its array.
  Content read(const std::string& name) const {
    if (!archive_) {
      const auto file = std::make_shared<const MappedFile>(file_of(name));
      return {file, file->bytes()};
    }
    const auto array =
        std::ranges::find(archive_->members(), name + std::string(kEnding), &ZipFile::Member::name);
    read_npy_header(*archive_, *array, path_ + ": array '" + name + "'");
    return archive_->read(*array);
  }

  void require(const std::string& stored, const std::string& name) const {
    if (std::ranges::count(names_, stored) > 0) return;
    const std::string near = nearest_name(stored, names_);
    std::string all;
    for (const std::string& name : names_) all += (all.empty() ? "" : ", ") + name;
    throw WrongKey("arrays", {path_},
                   "no array '" + stored + "'" +
                       (near.empty() ? "; it has " : "; did you mean '" + near + "'? It has ") + all,
                   name);
  }

 private:
  static std::string stem(const std::string& name) { return name.substr(0, name.size() - kEnding.size()); }

  std::string path_;
  std::optional<ZipFile> archive_;
  std::vector<std::string> names_;
};

std::optional<at::ScalarType> dtype_of_numpy(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, at::ScalarType>, 12> kTypes{{{"b1", at::kBool},
                                                                                {"u1", at::kByte},
                                                                                {"i1", at::kChar},
                                                                                {"i2", at::kShort},
                                                                                {"i4", at::kInt},
                                                                                {"i8", at::kLong},
                                                                                {"u2", at::kUInt16},
                                                                                {"u4", at::kUInt32},
                                                                                {"u8", at::kUInt64},
                                                                                {"f2", at::kHalf},
                                                                                {"f4", at::kFloat},
                                                                                {"f8", at::kDouble}}};
  const auto known =
      std::ranges::find(kTypes, type.substr(1), &std::pair<std::string_view, at::ScalarType>::first);
  return known == kTypes.end() ? std::nullopt : std::optional(known->second);
}

StoredArray stored_array(const ArrayFiles& files, const std::string& stored, const std::string& name) {
  files.require(stored, name);
  const Content content = files.read(stored);
  const std::string file = files.file_of(stored);
  const NpyHeader header = read_npy_header(content.bytes, file + ": array '" + stored + "'");
  const auto dtype = dtype_of_numpy(header.type);
  TUTTI_ASSERT(dtype, header.type);
  StoredArray array{
      .name = name, .file = file, .where = "array '" + stored + "'", .dtype = *dtype, .shape = header.shape};
  require_rows(array);
  array.rows =
      contiguous_rows(content.owner, content.bytes.subspan(header.at, header.bytes()), header.shape[0]);
  return array;
}

}  // namespace

std::vector<StoredArray> open_numpy(const std::string& path,
                                    const std::vector<std::pair<std::string, std::string>>& names) {
  const ArrayFiles files(path);
  std::vector<StoredArray> arrays;
  for (const auto& [name, stored] : names) arrays.push_back(stored_array(files, stored, name));
  if (names.empty())
    for (const std::string& name : files.names()) arrays.push_back(stored_array(files, name, name));
  return arrays;
}

}  // namespace tutti
