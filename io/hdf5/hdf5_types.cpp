#include "io/hdf5/hdf5_types.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

// The type of IEEE half or bfloat16: two little-endian bytes with sign, exponent and mantissa.
Hdf5Handle small_float(size_t exponent_bits, size_t bias) {
  Hdf5Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  const size_t mantissa_bits = 15 - exponent_bits;
  hdf5_check(H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits) >= 0, "H5Tset_fields");
  hdf5_check(H5Tset_size(type, 2) >= 0, "H5Tset_size");
  hdf5_check(H5Tset_ebias(type, bias) >= 0, "H5Tset_ebias");
  return type;
}

Hdf5Handle boolean_type() {
  Hdf5Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  for (const auto& [name, value] : {std::pair<const char*, signed char>{"FALSE", 0}, {"TRUE", 1}}) {
    hdf5_check(H5Tenum_insert(type, name, &value) >= 0, "H5Tenum_insert");
  }
  return type;
}

hid_t standard_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return H5T_IEEE_F32LE;
    case at::kDouble:
      return H5T_IEEE_F64LE;
    case at::kLong:
      return H5T_STD_I64LE;
    case at::kInt:
      return H5T_STD_I32LE;
    case at::kShort:
      return H5T_STD_I16LE;
    case at::kChar:
      return H5T_STD_I8LE;
    case at::kByte:
      return H5T_STD_U8LE;
    case at::kUInt16:
      return H5T_STD_U16LE;
    case at::kUInt32:
      return H5T_STD_U32LE;
    case at::kUInt64:
      return H5T_STD_U64LE;
    default:
      TUTTI_ASSERT(false, std::string("HDF5 has no type for ") + c10::toString(dtype));
  }
}

std::optional<at::ScalarType> integer_dtype(size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? at::kChar : at::kByte;
    case 2:
      return is_signed ? at::kShort : at::kUInt16;
    case 4:
      return is_signed ? at::kInt : at::kUInt32;
    case 8:
      return is_signed ? at::kLong : at::kUInt64;
    default:
      return std::nullopt;
  }
}

std::optional<at::ScalarType> float_dtype(hid_t type) {
  const size_t bytes = H5Tget_size(type);
  if (bytes == 8) return at::kDouble;
  if (bytes == 4) return at::kFloat;
  if (bytes != 2) return std::nullopt;
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  hdf5_check(H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0,
             "H5Tget_fields");
  return exponent_bits == 8 ? at::kBFloat16 : at::kHalf;
}

bool is_boolean(hid_t type) {
  const Hdf5Handle expected = boolean_type();
  return H5Tequal(type, expected) > 0;
}

}  // namespace

Hdf5Handle hdf5_type(at::ScalarType dtype) {
  if (dtype == at::kBool) return boolean_type();
  if (dtype == at::kHalf) return small_float(5, 15);
  if (dtype == at::kBFloat16) return small_float(8, 127);
  return Hdf5Handle(H5Tcopy(standard_type(dtype)), H5Tclose);
}

std::optional<at::ScalarType> dtype_of_hdf5(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return integer_dtype(H5Tget_size(type), H5Tget_sign(type) == H5T_SGN_2);
    case H5T_FLOAT:
      return float_dtype(type);
    case H5T_ENUM:
      return is_boolean(type) ? std::optional(at::kBool)
                              : dtype_of_hdf5(Hdf5Handle(H5Tget_super(type), H5Tclose));
    default:
      return std::nullopt;
  }
}

std::string names_of_values(hid_t type) {
  if (H5Tget_class(type) != H5T_ENUM || is_boolean(type)) return "";
  const int count = H5Tget_nmembers(type);
  std::map<int64_t, std::string> names;
  for (int i = 0; i < count; ++i) {
    // Room for an integer of the file, which becomes one of 64 bits in place.
    std::vector<std::byte> value(std::max(H5Tget_size(type), sizeof(int64_t)));
    int64_t number = -1;
    const Hdf5Handle integer(H5Tget_super(type), H5Tclose);
    const auto index = static_cast<unsigned>(i);
    if (H5Tget_member_value(type, index, value.data()) < 0 ||
        H5Tconvert(integer, H5T_NATIVE_INT64, 1, value.data(), nullptr, H5P_DEFAULT) < 0)
      return "";
    std::memcpy(&number, value.data(), sizeof number);
    char* const name = H5Tget_member_name(type, index);
    names[number] = name == nullptr ? "" : name;
    H5free_memory(name);
  }
  std::string lines;
  for (int64_t i = 0; i < count; ++i) {
    const auto name = names.find(i);
    if (name == names.end() || !is_printable(name->second) || name->second.empty()) return "";
    lines += (i == 0 ? "" : "\n") + name->second;
  }
  return lines;
}

}  // namespace tutti
