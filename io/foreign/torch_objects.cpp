#include "io/foreign/torch_objects.h"

#include <map>
#include <stdexcept>

#include "io/weights/torch_archive.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr int kMostNested = 64;
constexpr uint64_t kTensorBytes = 1024;  // of a tensor and its place, which takes long to look up

using Arguments = std::vector<PickledValue*>;

PickledValue empty_dict(const Arguments&) { return {PickledDict()}; }
PickledValue unknown(const Arguments&) { return {}; }

// Elements of a list, mostly the only argument.
PickledValue elements(const Arguments& arguments) {
  const auto* list = arguments.empty() ? nullptr : std::get_if<PickledList>(&arguments.front()->value);
  return {list ? *list : PickledList()};
}

PickledValue only_text(const Arguments& arguments) {
  return arguments.empty() ? PickledValue() : *arguments.front();
}

// Days, seconds, microseconds; a plain number of seconds.
PickledValue seconds(const Arguments& arguments) {
  constexpr double kSecondsOfParts[] = {86400, 1, 1e-6};
  double sum = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, arguments.size()); ++i)
    if (const auto* count = std::get_if<int64_t>(&arguments[i]->value))
      sum += static_cast<double>(*count) * kSecondsOfParts[i];
  return {sum};
}

using Function = PickledValue (*)(const Arguments&);
const std::map<std::string, Function>& functions_of_checkpoints() {
  static const std::map<std::string, Function> all{
      {"datetime.timedelta", seconds},
      {"torch.torch_version.TorchVersion", only_text},
      {"collections.defaultdict", empty_dict},
      {"collections.Counter", empty_dict},
      {"collections.deque", elements},
      {"builtins.set", elements},
      {"builtins.dict", empty_dict},
      {"builtins.list", elements},
      {"pathlib.PosixPath", unknown},
      {"pathlib._local.PosixPath", unknown},
      {"argparse.Namespace", unknown},
      {"lightning.fabric.utilities.data.AttributeDict", empty_dict},
      {"lightning_fabric.utilities.data.AttributeDict", empty_dict},
      {"pytorch_lightning.utilities.parsing.AttributeDict", empty_dict},
      {"lightning.pytorch.utilities.parsing.AttributeDict", empty_dict}};
  return all;
}

bool is_of_checkpoint(const std::string& global) {
  return functions_of_checkpoints().contains(global) || kObjectsOfStateDicts.has(global);
}

PickledValue called_by_checkpoint(const std::string& global, const Arguments& arguments) {
  const auto function = functions_of_checkpoints().find(global);
  return function == functions_of_checkpoints().end() ? kObjectsOfStateDicts.called(global, arguments)
                                                      : function->second(arguments);
}

// Makes a tree of the values of a pickle.
class TreeOfPickle {
 public:
  TreeOfPickle(const TorchArchive& archive, const std::string& path, uint64_t pickle_bytes)
      : archive_(archive), path_(path), memory_(pickle_bytes) {}

  ObjectTree of(const PickledValue& value, const std::string& name = "", int depth = 0) const {
    if (depth > kMostNested) archive_.fail("its objects contain each other");
    take(sizeof(ObjectTree));
    return std::visit([&](const auto& one) { return tree(one, name, depth + 1); }, value.value);
  }

 private:
  static ObjectTree tree(std::monostate, const std::string&, int) { return {}; }
  static ObjectTree tree(bool value, const std::string&, int) { return {value}; }
  static ObjectTree tree(int64_t value, const std::string&, int) { return {value}; }
  static ObjectTree tree(double value, const std::string&, int) { return {value}; }
  static ObjectTree tree(const PickledGlobal& value, const std::string&, int) { return {value.name}; }
  static ObjectTree tree(const PickledStorage&, const std::string&, int) { return {}; }
  static ObjectTree tree(const PickledObject&, const std::string&, int) { return {}; }

  void take(uint64_t bytes) const {
    if (!memory_.take(bytes)) archive_.fail(kTooManyObjects);
  }

  ObjectTree tree(const std::string& value, const std::string&, int) const {
    take(value.size());
    return {as_utf8(value)};
  }

  ObjectTree tree(const PickledList& list, const std::string& name, int depth) const {
    ObjectTree::List items;
    for (const PickledValue* item : list.values) items.push_back(of(*item, name, depth));
    return {std::move(items)};
  }

  ObjectTree tree(const PickledDict& dict, const std::string&, int depth) const {
    ObjectTree::Dict entries;
    for (const auto& [key, value] : dict.entries) {
      const auto* text = std::get_if<std::string>(&key->value);
      const auto* number = std::get_if<int64_t>(&key->value);
      if (!text && !number) continue;
      take(sizeof(std::string) + (text ? text->size() : 0));
      std::string name = text ? as_utf8(*text) : std::to_string(*number);
      entries.emplace_back(name, of(*value, name, depth));
    }
    return {std::move(entries)};
  }

  ObjectTree tree(const PickledTensor& tensor, const std::string& name, int) const {
    take(kTensorBytes + 3 * sizeof(int64_t) * tensor.shape.size());
    TorchArchive::Place place = archive_.place(tensor, name);
    TreeTensor whole{tensor.storage.dtype, tensor.shape, {}};
    whole.parts.push_back(
        {path_, place.at, Shape(tensor.shape.size(), 0), tensor.shape, std::move(place.strides)});
    return {std::move(whole)};
  }

  const TorchArchive& archive_;
  const std::string& path_;
  mutable ObjectMemory memory_;
};

}  // namespace

const PickledObjects kObjectsOfCheckpoints{
    is_of_checkpoint, called_by_checkpoint,
    "of which checkpoints have no need; tutti runs none of it: save the checkpoint without that object"};

ObjectTree torch_objects_at(const MappedFile& file, uint64_t begin, uint64_t size) {
  const TorchArchive archive(file, begin, size);
  const Pickle pickle = archive.pickle(kObjectsOfCheckpoints);
  return TreeOfPickle(archive, file.path(), pickle.bytes()).of(pickle.root());
}

ObjectTree read_torch_objects(const std::string& path) {
  const MappedFile file(path);
  return torch_objects_at(file, 0, file.bytes().size());
}

}  // namespace tutti
