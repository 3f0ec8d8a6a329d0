#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tensors/param_view.h"

namespace tutti {

struct PickledValue;

// A list or a tuple.
struct PickledList {
  std::vector<PickledValue*> values;
};

// A dict, in the order of the file.
struct PickledDict {
  std::vector<std::pair<PickledValue*, PickledValue*>> entries;

  const PickledValue* find(std::string_view key) const;  // the last of this name; null if there is none
};

// The Python object that a pickle names: "torch._utils._rebuild_tensor_v2".
struct PickledGlobal {
  std::string name;
};

// Numbers in a record of the file: "data/KEY" of a zip archive.
struct PickledStorage {
  std::string key;
  at::ScalarType dtype = at::kByte;  // kByte also for storages without a dtype
  int64_t numbers = 0;               // of the dtype
};

// A part of a storage.
struct PickledTensor {
  PickledStorage storage;  // with the tensor's dtype
  int64_t offset = 0;      // the first number's place
  Shape shape;
  Shape strides;  // in numbers
};

// An object of a Python class, with the arguments of its constructor.
struct PickledObject {
  std::string global;
  std::vector<PickledValue*> arguments;
  const PickledValue* attributes = nullptr;  // mostly a dict; null: not set
};

// Monostate: None, and all else that no weights need.
struct PickledValue {
  std::variant<std::monostate, int64_t, std::string, PickledList, PickledDict, PickledGlobal, PickledStorage,
               PickledTensor, PickledObject, bool, double>
      value;
};

// The Python objects that pickles of a kind name.
struct PickledObjects {
  bool (*has)(const std::string& global);
  // The result of calling the global with these arguments. Throws std::invalid_argument, with the reason, for
  // other arguments or a global that cannot be called.
  PickledValue (*called)(const std::string& global, const std::vector<PickledValue*>& arguments);
  const char* others;  // the remark about other values, behind the name
};
extern const PickledObjects kObjectsOfStateDicts;

// The storage of a persistent id, ("storage", type, key, device, numbers). Throws std::invalid_argument.
PickledValue storage_of(const PickledValue& id);

}  // namespace tutti
