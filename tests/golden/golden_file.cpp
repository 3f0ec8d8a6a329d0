#include "tests/golden/golden_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace tutti {
namespace {

hid_t must(hid_t id, const std::string& what) {
  if (id < 0) throw std::runtime_error("golden data: no " + what);
  return id;
}

// Closes an HDF5 object when it goes out of scope.
struct Held {
  hid_t id;
  herr_t (*close)(hid_t);
  Held(hid_t id, herr_t (*close)(hid_t)) : id(id), close(close) {}
  Held(const Held&) = delete;
  ~Held() { close(id); }
};

std::pair<at::ScalarType, hid_t> memory_type(hid_t stored) {
  const size_t size = H5Tget_size(stored);
  if (H5Tget_class(stored) == H5T_FLOAT)
    return size == 8 ? std::pair{at::kDouble, H5T_NATIVE_DOUBLE} : std::pair{at::kFloat, H5T_NATIVE_FLOAT};
  return size == 1 ? std::pair{at::kByte, H5T_NATIVE_UINT8} : std::pair{at::kLong, H5T_NATIVE_INT64};
}

std::vector<std::string> links(hid_t group) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
    static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    return 0;
  };
  H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names);
  return names;
}

}  // namespace

bool is_own_folder() { return std::getenv("TUTTI_GOLDEN_DIR") == nullptr; }

std::string golden_folder() {
  return is_own_folder() ? TUTTI_SOURCE_DIR "/tests/golden" : std::getenv("TUTTI_GOLDEN_DIR");
}

std::string golden_path(const std::string& file) { return golden_folder() + '/' + file; }

std::string own_path(const std::string& file) { return TUTTI_SOURCE_DIR "/tests/golden/" + file; }

std::vector<std::string> golden_cases(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  const Held opened(must(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), path), H5Fclose);
  const Held root(must(H5Gopen2(opened.id, "/", H5P_DEFAULT), "root"), H5Gclose);
  std::vector<std::string> names = links(root.id);
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return std::pair(a.size(), a) < std::pair(b.size(), b); });
  return names;
}

std::vector<std::string> parts_of(const std::string& joined) {
  std::vector<std::string> parts;
  std::istringstream in(joined);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

GoldenCase::GoldenCase(const std::string& path, const std::string& name)
    : file_(must(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), path)),
      group_(must(H5Gopen2(file_, name.c_str(), H5P_DEFAULT), name)),
      title_(std::filesystem::path(path).filename().string() + ", " + name) {
  if (has("title")) title_ += ", " + text("title");
}

GoldenCase::~GoldenCase() {
  H5Gclose(group_);
  H5Fclose(file_);
}

at::Tensor GoldenCase::tensor(const std::string& dataset) const {
  const Held opened(must(H5Dopen2(group_, dataset.c_str(), H5P_DEFAULT), dataset + " in " + title_),
                    H5Dclose);
  const Held space(H5Dget_space(opened.id), H5Sclose);
  const Held type(H5Dget_type(opened.id), H5Tclose);
  std::vector<hsize_t> sizes(static_cast<size_t>(H5Sget_simple_extent_ndims(space.id)));
  H5Sget_simple_extent_dims(space.id, sizes.data(), nullptr);
  const auto [dtype, memory] = memory_type(type.id);
  at::Tensor tensor = at::empty(std::vector<int64_t>(sizes.begin(), sizes.end()), dtype);
  if (tensor.numel() > 0)
    must(H5Dread(opened.id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.data_ptr()), dataset);
  return tensor;
}

std::vector<std::string> GoldenCase::names(const std::string& group) const {
  const Held opened(must(H5Gopen2(group_, group.c_str(), H5P_DEFAULT), group), H5Gclose);
  return links(opened.id);
}

bool GoldenCase::holds(const std::string& path) const {
  for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1))
    if (H5Lexists(group_, path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
  return H5Lexists(group_, path.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> GoldenCase::attributes() const {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5A_info_t*, void* into) -> herr_t {
    static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    return 0;
  };
  H5Aiterate2(group_, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names);
  return names;
}

bool GoldenCase::is_text(const std::string& attribute) const {
  const Held opened(must(H5Aopen(group_, attribute.c_str(), H5P_DEFAULT), attribute), H5Aclose);
  const Held type(H5Aget_type(opened.id), H5Tclose);
  return H5Tget_class(type.id) == H5T_STRING;
}

bool GoldenCase::has(const std::string& attribute) const {
  if (H5Aexists(group_, attribute.c_str()) <= 0) return false;
  return !is_text(attribute) || text(attribute) != "None";
}

void GoldenCase::expect_only(std::set<std::string> parameters, std::set<std::string> inputs) const {
  parameters.insert({"title", "composer_api", "rtol", "atol", "error", "note"});
  for (const std::string& name : attributes())
    EXPECT_TRUE(!has(name) || parameters.contains(name))
        << title_ << ": no test knows the parameter " << name;
  if (inputs.empty()) return;
  for (const std::string& name : names("in"))
    EXPECT_TRUE(inputs.contains(name)) << title_ << ": no test knows the input " << name;
}

void GoldenCase::expect_only_outputs(const std::set<std::string>& outputs) const {
  for (const std::string& name : names("out"))
    EXPECT_TRUE(outputs.contains(name)) << title_ << ": no test knows the output " << name;
}

std::string GoldenCase::text(const std::string& attribute) const {
  if (!is_text(attribute)) throw std::runtime_error("golden data: " + attribute + " is no text");
  const Held opened(must(H5Aopen(group_, attribute.c_str(), H5P_DEFAULT), attribute), H5Aclose);
  const Held type(H5Aget_type(opened.id), H5Tclose);
  if (H5Tis_variable_str(type.id) <= 0) {
    std::string fixed(H5Tget_size(type.id), '\0');
    H5Aread(opened.id, type.id, fixed.data());
    return fixed.c_str();
  }
  char* read = nullptr;
  must(H5Aread(opened.id, type.id, &read), attribute);
  std::string text = read ? read : "";
  H5free_memory(read);
  return text;
}

std::vector<double> GoldenCase::numbers(const std::string& attribute) const {
  const Held opened(must(H5Aopen(group_, attribute.c_str(), H5P_DEFAULT), attribute), H5Aclose);
  const Held space(H5Aget_space(opened.id), H5Sclose);
  std::vector<double> values(static_cast<size_t>(H5Sget_simple_extent_npoints(space.id)));
  if (!values.empty()) must(H5Aread(opened.id, H5T_NATIVE_DOUBLE, values.data()), attribute);
  return values;
}

double GoldenCase::number(const std::string& attribute) const { return numbers(attribute).at(0); }

double GoldenCase::atol_of(const std::string& dataset) const {
  const bool is_series = !dataset.starts_with("out/weights/") && !dataset.starts_with("out/ema/");
  return number(is_series || !has("weights_atol") ? "atol" : "weights_atol");
}

void GoldenCase::expect_close(const at::Tensor& got, const std::string& dataset) const {
  const at::Tensor stored = tensor(dataset).to(at::kDouble);
  const at::Tensor want = got.dim() == 0 && stored.numel() == 1 ? stored.reshape({}) : stored;
  ASSERT_EQ(got.sizes(), want.sizes()) << title_ << ": " << dataset;
  if (want.numel() == 0) return;
  const double furthest = (got.to(at::kDouble) - want).abs().max().item<double>();
  EXPECT_TRUE(at::allclose(got.to(at::kDouble), want, number("rtol"), atol_of(dataset), /*equal_nan=*/true))
      << title_ << ": " << dataset << " is off by up to " << furthest;
}

}  // namespace tutti
