#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>

#include "io/foreign/object_tree.h"
#include "io/foreign/torch_objects.h"
#include "io/formats/dtypes.h"
#include "io/weights/pickle.h"
#include "io/weights/torch_archive.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::string_view kMetadata = "torch.distributed.checkpoint.metadata.";

// Classes of which a pickle of metadata has objects with attributes.
bool is_class_of_metadata(const std::string& global) {
  constexpr std::string_view kClasses[] = {
      "Metadata",    "TensorStorageMetadata", "TensorProperties", "MetadataIndex", "BytesStorageMetadata",
      "StorageMeta", "ChunkStorageMetadata"};
  return global == "torch.distributed.checkpoint.filesystem._StorageInfo" ||
         (global.starts_with(kMetadata) &&
          std::ranges::count(kClasses, std::string_view(global).substr(kMetadata.size())) > 0);
}

// Layouts and memory formats, of which tutti has no need. `getattr` is not called.
bool is_unread(const std::string& global) {
  constexpr std::string_view kUnread[] = {"builtins.getattr",
                                          "torch.serialization._get_layout",
                                          "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING",
                                          "pathlib.PosixPath",
                                          "pathlib._local.PosixPath",
                                          "collections.OrderedDict"};
  return std::ranges::count(kUnread, global) > 0;
}

bool is_of_metadata(const std::string& global) {
  return is_class_of_metadata(global) || is_unread(global) || kObjectsOfStateDicts.has(global);
}

PickledValue called_by_metadata(const std::string& global, const std::vector<PickledValue*>& arguments) {
  if (is_class_of_metadata(global)) return {PickledObject{global, arguments, nullptr}};
  if (is_unread(global)) return {};
  return kObjectsOfStateDicts.called(global, arguments);
}

constexpr PickledObjects kObjectsOfMetadata{is_of_metadata, called_by_metadata,
                                            "which no metadata of a distributed checkpoint need; tutti runs "
                                            "none of it"};

class DistributedFolder {
 public:
  explicit DistributedFolder(const std::string& folder)
      : folder_(folder),
        path_(folder + "/.metadata"),
        file_(path_),
        pickle_(file_.bytes(), path_, kObjectsOfMetadata) {
    for (const auto& [index, info] : dict(attribute(&pickle_.root(), "storage_data")).entries)
      places_[{text(attribute(index, "fqn")), sizes(attribute(index, "offset"))}] = info;
  }

  ObjectTree read() {
    ObjectTree root{ObjectTree::Dict()};
    const PickledValue* paths = attribute(&pickle_.root(), "planner_data");
    for (const auto& [key, entry] : dict(attribute(&pickle_.root(), "state_dict_metadata")).entries) {
      const std::string name = text(key);
      const auto* by_name = paths ? std::get_if<PickledDict>(&paths->value) : nullptr;
      const PickledValue* path = by_name ? by_name->find(name) : nullptr;
      insert(root, path ? keys_of(*path) : std::vector{as_utf8(name)}, leaf(name, *entry));
    }
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw UserError({path_}, what); }

  const PickledObject& object(const PickledValue* value) const {
    const auto* known = value ? std::get_if<PickledObject>(&value->value) : nullptr;
    if (!known) fail("the metadata have other objects than torch.distributed.checkpoint writes");
    return *known;
  }

  // Null if the object has no such attribute.
  const PickledValue* attribute(const PickledValue* value, const char* name) const {
    return dict(object(value).attributes).find(name);
  }

  const PickledDict& dict(const PickledValue* value) const {
    const auto* known = value ? std::get_if<PickledDict>(&value->value) : nullptr;
    if (!known) fail("the metadata have no dict where torch.distributed.checkpoint writes a dict");
    return *known;
  }

  std::string text(const PickledValue* value) const {
    const auto* known = value ? std::get_if<std::string>(&value->value) : nullptr;
    if (!known) fail("the metadata have no text where torch.distributed.checkpoint writes a text");
    return *known;
  }

  uint64_t count(const PickledValue* value) const {
    const auto* known = value ? std::get_if<int64_t>(&value->value) : nullptr;
    if (!known || *known < 0)
      fail("the metadata have no number of bytes where torch.distributed.checkpoint writes one");
    return static_cast<uint64_t>(*known);
  }

  // Empty for None.
  Shape sizes(const PickledValue* value) const {
    Shape all;
    const auto* list = value ? std::get_if<PickledList>(&value->value) : nullptr;
    if (list)
      for (const PickledValue* size : list->values) all.push_back(static_cast<int64_t>(count(size)));
    return all;
  }

  std::vector<std::string> keys_of(const PickledValue& path) const {
    std::vector<std::string> keys;
    const auto* list = std::get_if<PickledList>(&path.value);
    for (const PickledValue* key : list ? list->values : std::vector<PickledValue*>()) {
      const auto* number = std::get_if<int64_t>(&key->value);
      keys.push_back(number ? std::to_string(*number) : as_utf8(text(key)));
    }
    return keys;
  }

  static void insert(ObjectTree& root, const std::vector<std::string>& keys, ObjectTree leaf) {
    ObjectTree* node = &root;
    for (const std::string& key : keys) {
      if (!node->dict()) node->value = ObjectTree::Dict();
      auto& entries = std::get<ObjectTree::Dict>(node->value);
      auto known = std::ranges::find_if(entries, [&](const auto& entry) { return entry.first == key; });
      if (known == entries.end()) known = entries.insert(entries.end(), {key, ObjectTree()});
      node = &known->second;
    }
    *node = std::move(leaf);
  }

  ObjectTree leaf(const std::string& name, const PickledValue& entry) {
    if (!object(&entry).global.ends_with("TensorStorageMetadata")) return objects_of(name);
    const PickledValue* properties = object(attribute(&entry, "properties")).attributes;
    const auto* list = properties ? std::get_if<PickledList>(&properties->value) : nullptr;
    const auto* global =
        list && !list->values.empty() ? std::get_if<PickledGlobal>(&list->values.front()->value) : nullptr;
    const auto dtype =
        global ? dtype_of_name(global->name.substr(global->name.rfind('.') + 1)) : std::nullopt;
    if (!dtype) fail("'" + name + "' has no dtype that tutti reads");
    TreeTensor tensor{*dtype, sizes(attribute(&entry, "size")), {}};
    const PickledValue* pieces = attribute(&entry, "chunks");
    const auto* chunks = pieces ? std::get_if<PickledList>(&pieces->value) : nullptr;
    for (const PickledValue* piece : chunks ? chunks->values : std::vector<PickledValue*>())
      tensor.parts.push_back(
          part(name, tensor, sizes(attribute(piece, "offsets")), sizes(attribute(piece, "sizes"))));
    return {std::move(tensor)};
  }

  // The bytes in a ".distcp" file that hold an object or a piece.
  const PickledValue* place(const std::string& name, const Shape& offset) const {
    auto known = places_.find({name, offset});
    if (known == places_.end()) known = places_.find({name, {}});  // of a whole tensor
    if (known == places_.end()) fail("the metadata do not say where '" + name + "' is");
    return known->second;
  }

  const MappedFile& data_file(const PickledValue* info) {
    const std::string name = text(attribute(info, "relative_path"));
    if (name.find('/') != std::string::npos) fail("'" + name + "' is no name of a file in the folder");
    const PickledValue* transforms = attribute(info, "transform_descriptors");
    if (transforms && std::holds_alternative<PickledList>(transforms->value))
      fail("'" + name + "' is compressed, which tutti does not read");
    auto& file = files_[name];
    if (!file) file = std::make_unique<MappedFile>(folder_ + "/" + name);
    return *file;
  }

  ObjectTree objects_of(const std::string& name) {
    const PickledValue* info = place(name, {});
    return torch_objects_at(data_file(info), count(attribute(info, "offset")),
                            count(attribute(info, "length")));
  }

  TreeTensor::Part part(const std::string& name, const TreeTensor& whole, const Shape& offset,
                        const Shape& extent) {
    const PickledValue* info = place(name, offset);
    const ObjectTree saved =
        torch_objects_at(data_file(info), count(attribute(info, "offset")), count(attribute(info, "length")));
    const TreeTensor* tensor = saved.tensor();
    if (!tensor || tensor->shape != extent || tensor->dtype != whole.dtype)
      fail("'" + name + "' has another shape or dtype in " + data_file(info).path());
    TreeTensor::Part part = tensor->parts.front();
    part.offset = offset;
    return part;
  }

  const std::string folder_, path_;
  const MappedFile file_;
  const Pickle pickle_;
  std::map<std::pair<std::string, Shape>, const PickledValue*> places_;
  std::map<std::string, std::unique_ptr<MappedFile>> files_;
};

}  // namespace

ObjectTree read_distributed_objects(const std::string& folder) { return DistributedFolder(folder).read(); }

}  // namespace tutti
