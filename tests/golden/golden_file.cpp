#include "tests/golden/golden_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>

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

std::string golden_path(const std::string& file) { return TUTTI_SOURCE_DIR "/tests/golden/" + file; }

std::vector<std::string> golden_cases(const std::string& file) {
  const Held opened(must(H5Fopen(golden_path(file).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), file), H5Fclose);
  const Held root(must(H5Gopen2(opened.id, "/", H5P_DEFAULT), "root"), H5Gclose);
  std::vector<std::string> names = links(root.id);
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return std::pair(a.size(), a) < std::pair(b.size(), b); });
  return names;
}

GoldenCase::GoldenCase(const std::string& file, const std::string& name)
    : file_(must(H5Fopen(golden_path(file).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), file)),
      group_(must(H5Gopen2(file_, name.c_str(), H5P_DEFAULT), name)),
      title_(file + ", " + name) {
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

bool GoldenCase::has(const std::string& attribute) const { return H5Aexists(group_, attribute.c_str()) > 0; }

std::string GoldenCase::text(const std::string& attribute) const {
  const Held opened(must(H5Aopen(group_, attribute.c_str(), H5P_DEFAULT), attribute), H5Aclose);
  const Held type(H5Aget_type(opened.id), H5Tclose);
  if (H5Tis_variable_str(type.id) <= 0) {
    std::string fixed(H5Tget_size(type.id), '\0');
    H5Aread(opened.id, type.id, fixed.data());
    return fixed.c_str();
  }
  char* read = nullptr;
  must(H5Aread(opened.id, type.id, &read), attribute);
  std::string text = read;
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

void GoldenCase::expect_close(const at::Tensor& got, const std::string& dataset) const {
  const at::Tensor want = tensor(dataset).to(at::kDouble);
  ASSERT_EQ(got.sizes(), want.sizes()) << title_ << ": " << dataset;
  const double furthest = (got.to(at::kDouble) - want).abs().max().item<double>();
  EXPECT_TRUE(at::allclose(got.to(at::kDouble), want, number("rtol"), number("atol")))
      << title_ << ": " << dataset << " is off by up to " << furthest;
}

// GCC 12 takes a moved-from variant for uninitialised where settings are built in one expression.
Setting::Value golden_list(const std::vector<Setting::Value>& items) {
  Setting::Value value = Setting::Array();
  for (const Setting::Value& item : items) {
    Setting& added = std::get<Setting::Array>(value).emplace_back();
    added.value = item;
    added.path = "section.list";
  }
  return value;
}

Setting golden_section(std::vector<std::pair<std::string, Setting::Value>> keys) {
  Setting section;
  section.value = Setting::Table();
  section.path = "section";
  for (auto& [name, value] : keys) {
    auto& [key, added] = section.table().emplace_back();
    key = name;
    added.value = std::move(value);
    added.path = "section." + name;
    added.position = {"test", 1};
  }
  return section;
}

}  // namespace tutti
