#include <algorithm>
#include <list>
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

constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // about 300,000 pieces
constexpr uint64_t kMapBytes = 64;                   // of an entry of a map
constexpr std::size_t kMostKeys = 64, kMostNameBytes = 4096, kMostDims = 64, kMostAttributes = 64;

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
        pickle_(whole(file_), path_, kObjectsOfMetadata) {
    for (const auto& [index, info] : dict(attribute(&pickle_.root(), "storage_data")).entries)
      places_[{text(attribute(index, "fqn")), sizes(attribute(index, "offset"))}] = info;
    const PickledValue* paths = attribute(&pickle_.root(), "planner_data");
    if (const auto* by_name = paths ? std::get_if<PickledDict>(&paths->value) : nullptr)
      for (const auto& [name, path] : by_name->entries) paths_[text(name)] = path;
  }

  ObjectTree read() {
    for (const auto& [key, entry] : dict(attribute(&pickle_.root(), "state_dict_metadata")).entries) {
      const std::string name = text(key);
      const auto path = paths_.find(name);
      const auto keys = path == paths_.end() ? std::vector{as_utf8(name)} : keys_of(*path->second);
      insert(keys, leaf(name, *entry));
    }
    return tree_of(root_);
  }

 private:
  // A tree in the making: its keys are many.
  struct Node {
    ObjectTree leaf;
    std::list<std::pair<std::string, Node>> inner;  // in the order of the file
    std::map<std::string_view, Node*> by_key;
  };

  [[noreturn]] void fail(const std::string& what) const { throw UserError({path_}, what); }

  std::span<const std::byte> whole(const MappedFile& file) const {
    if (file.bytes().size() > kMostBytes)
      fail("the metadata have " + std::to_string(file.bytes().size()) + " bytes; tutti reads at most " +
           std::to_string(kMostBytes) + ", which is enough for 300,000 pieces of tensors");
    return file.bytes();
  }

  const PickledObject& object(const PickledValue* value) const {
    const auto* known = value ? std::get_if<PickledObject>(&value->value) : nullptr;
    if (!known) fail("the metadata have other objects than torch.distributed.checkpoint writes");
    return *known;
  }

  // Null if the object has no such attribute.
  const PickledValue* attribute(const PickledValue* value, const char* name) const {
    const PickledDict& attributes = dict(object(value).attributes);
    if (attributes.entries.size() > kMostAttributes) fail("the metadata have an object of many attributes");
    return attributes.find(name);
  }

  const PickledDict& dict(const PickledValue* value) const {
    const auto* known = value ? std::get_if<PickledDict>(&value->value) : nullptr;
    if (!known) fail("the metadata have no dict where torch.distributed.checkpoint writes a dict");
    return *known;
  }

  std::string text(const PickledValue* value) const {
    const auto* known = value ? std::get_if<std::string>(&value->value) : nullptr;
    if (!known) fail("the metadata have no text where torch.distributed.checkpoint writes a text");
    if (known->size() > kMostNameBytes)
      fail("the metadata have a name of " + std::to_string(known->size()) + " bytes");
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
    if (list && list->values.size() > kMostDims)
      fail("the metadata have a tensor of " + std::to_string(list->values.size()) + " dimensions");
    if (list)
      for (const PickledValue* size : list->values) all.push_back(static_cast<int64_t>(count(size)));
    return all;
  }

  std::vector<std::string> keys_of(const PickledValue& path) const {
    std::vector<std::string> keys;
    std::size_t bytes = 0;
    const auto* list = std::get_if<PickledList>(&path.value);
    for (const PickledValue* key : list ? list->values : std::vector<PickledValue*>()) {
      const auto* number = std::get_if<int64_t>(&key->value);
      keys.push_back(number ? std::to_string(*number) : as_utf8(text(key)));
      bytes += keys.back().size();
      if (keys.size() > kMostKeys || bytes > kMostNameBytes)
        fail("the metadata have a path of more than " + std::to_string(kMostKeys) + " keys, or " +
             std::to_string(kMostNameBytes) + " bytes");
    }
    return keys;
  }

  void insert(const std::vector<std::string>& keys, ObjectTree leaf) {
    Node* node = &root_;
    for (const std::string& key : keys) {
      const auto known = node->by_key.find(key);
      if (known != node->by_key.end()) {
        node = known->second;
        continue;
      }
      if (!memory_.take(sizeof(Node) + kMapBytes + key.size())) fail(kTooManyObjects);
      auto& [name, fresh] = node->inner.emplace_back(key, Node());
      node = node->by_key[name] = &fresh;
    }
    node->leaf = std::move(leaf);
  }

  static ObjectTree tree_of(Node& node) {
    if (node.inner.empty()) return std::move(node.leaf);
    ObjectTree::Dict entries;
    for (auto& [key, inner] : node.inner) entries.emplace_back(key, tree_of(inner));
    return {std::move(entries)};
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
    DataFile& data = files_[name];
    if (!data.file) data.file = std::make_unique<MappedFile>(folder_ + "/" + name);
    return *data.file;
  }

  // Pieces do not overlap, so that no file is read more than once.
  ObjectTree objects_at(const PickledValue* info) {
    const MappedFile& file = data_file(info);
    const uint64_t length = count(attribute(info, "length")), size = file.bytes().size();
    uint64_t& read = files_[text(attribute(info, "relative_path"))].read;
    if (length <= size && length > size - read) fail("the metadata have pieces of " + file.path() + " twice");
    const ObjectTree saved = torch_objects_at(file, count(attribute(info, "offset")), length);
    read += length;
    return saved;
  }

  ObjectTree objects_of(const std::string& name) { return objects_at(place(name, {})); }

  TreeTensor::Part part(const std::string& name, const TreeTensor& whole, const Shape& offset,
                        const Shape& extent) {
    const PickledValue* info = place(name, offset);
    const ObjectTree saved = objects_at(info);
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
  std::map<std::string, const PickledValue*> paths_;
  struct DataFile {
    std::unique_ptr<MappedFile> file;
    uint64_t read = 0;  // bytes
  };
  std::map<std::string, DataFile> files_;
  Node root_;
  ObjectMemory memory_{kMostBytes};
};

}  // namespace

ObjectTree read_distributed_objects(const std::string& folder) { return DistributedFolder(folder).read(); }

}  // namespace tutti
