#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "cli/init/look.h"
#include "io/formats/npy.h"
#include "io/formats/zip_file.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".npy";

std::string array_place(const std::string& path, const std::string& name) {
  return path + ": array '" + name + "'";
}

// Calls visit(name, header, content) for each array; content() reads its file.
template <class Visit>
void for_each_array(const std::string& path, const Visit& visit) {
  if (fs::is_directory(path)) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == kEnding) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      const auto mapped = std::make_shared<const MappedFile>(file.string());
      const std::string name = file.stem().string();
      visit(name, read_npy_header(mapped->bytes(), array_place(path, name)), [&] {
        return ZipFile::Content{mapped, mapped->bytes()};
      });
    }
    return;
  }
  const ZipFile archive(path);
  for (const auto& member : archive.members()) {
    if (!member.name.ends_with(kEnding)) continue;
    const std::string name = member.name.substr(0, member.name.size() - std::strlen(kEnding));
    visit(name, read_npy_header(archive, member, array_place(path, name)),
          [&] { return archive.read(member); });
  }
}

ListedArray listed(const std::string& name, const NpyHeader& header) {
  using Numbers = ListedArray::Numbers;
  const char type = header.type[1];
  const std::string bits = std::to_string(8 * header.item_bytes);
  ListedArray array{.path = name, .shape = header.shape};
  array.numbers = type == 'b' ? Numbers::kBooleans : type == 'f' ? Numbers::kFloats : Numbers::kIntegers;
  array.dtype = type == 'b' ? "bool" : (type == 'f' ? "float" : type == 'u' ? "uint" : "int") + bits;
  return array;
}

template <class Number>
double number_at(const std::byte* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return static_cast<double>(number);
}

double number_of(const std::string& type, const std::byte* at) {
  static const std::map<std::string, double (*)(const std::byte*)> readers = {
      {"b1", number_at<uint8_t>},  {"u1", number_at<uint8_t>},  {"i1", number_at<int8_t>},
      {"u2", number_at<uint16_t>}, {"i2", number_at<int16_t>},  {"u4", number_at<uint32_t>},
      {"i4", number_at<int32_t>},  {"u8", number_at<uint64_t>}, {"i8", number_at<int64_t>},
      {"f4", number_at<float>},    {"f8", number_at<double>}};
  const auto found = readers.find(type.substr(1));
  return found == readers.end() ? 0 : found->second(at);
}

}  // namespace

bool is_numpy(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return lower_case(fs::path(path).extension().string()) == ".npz";
  return std::ranges::any_of(fs::directory_iterator(path, ignored),
                             [](const auto& entry) { return entry.path().extension() == kEnding; });
}

std::vector<ListedArray> list_numpy(const std::string& path) {
  std::vector<ListedArray> arrays;
  for_each_array(path, [&](const std::string& name, const NpyHeader& header, const auto&) {
    arrays.push_back(listed(name, header));
  });
  return arrays;
}

std::vector<double> first_numpy_rows(const std::string& path, const ListedArray& array, int64_t rows) {
  std::vector<double> numbers;
  for_each_array(path, [&](const std::string& name, const NpyHeader& header, const auto& read) {
    if (name != array.path) return;
    const ZipFile::Content content = read();
    const int64_t count = std::min(rows, array.rows()) * array.row_size();
    for (int64_t i = 0; i < count; ++i)
      numbers.push_back(number_of(
          header.type, &content.bytes[header.at + static_cast<std::size_t>(i) * header.item_bytes]));
  });
  return numbers;
}

}  // namespace tutti
