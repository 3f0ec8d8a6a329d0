#include "data/arrays/numpy_arrays.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "io/numpy/numpy_files.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

void require_array(const NumpyFiles& files, const std::string& stored, const std::string& name) {
  std::vector<std::string> names = files.names();
  if (std::ranges::count(names, stored) > 0) return;
  std::ranges::sort(names);
  const std::string near = nearest_name(stored, names);
  std::string all;
  for (const std::string& other : names) all += (all.empty() ? "" : ", ") + other;
  throw WrongKey("arrays", {files.path()},
                 "no array '" + stored + "'" +
                     (near.empty() ? "; it has " : "; did you mean '" + near + "'? It has ") + all,
                 name);
}

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

StoredArray stored_array(const NumpyFiles& files, const std::string& stored, const std::string& name) {
  require_array(files, stored, name);
  const NumpyFiles::Content content = files.read(stored);
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
  const NumpyFiles files(path);
  std::vector<std::string> all = files.names();
  if (all.empty()) throw UserError({path}, "no arrays of numpy: an .npz file, or .npy files in a folder");
  std::ranges::sort(all);
  std::vector<StoredArray> arrays;
  for (const auto& [name, stored] : names) arrays.push_back(stored_array(files, stored, name));
  if (names.empty())
    for (const std::string& name : all) arrays.push_back(stored_array(files, name, name));
  return arrays;
}

}  // namespace tutti
