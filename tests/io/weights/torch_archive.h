#pragma once

#include <caffe2/serialize/inline_container.h>

#include <map>
#include <string>

namespace tutti {

// Writes a zip archive as torch.save does, of a pickle and the bytes of storages.
inline void write_torch_archive(const std::string& path, const std::string& pickle,
                                const std::map<std::string, std::string>& storages = {},
                                const std::map<std::string, std::string>& others = {},
                                bool compressed = false) {
  caffe2::serialize::PyTorchStreamWriter writer(path);
  writer.writeRecord("data.pkl", pickle.data(), pickle.size());
  for (const auto& [key, bytes] : storages)
    writer.writeRecord("data/" + key, bytes.data(), bytes.size(), compressed);
  for (const auto& [name, bytes] : others) writer.writeRecord(name, bytes.data(), bytes.size());
  writer.writeEndOfFile();
}

// Parts of a pickle, as pickletools.dis shows them.
class Pickled {
 public:
  static std::string text(const std::string& text) {
    return std::string("X") + static_cast<char>(text.size()) + std::string(3, '\0') + text;
  }
  static std::string number(int value) { return std::string("K") + static_cast<char>(value); }
  static std::string global(const std::string& module, const std::string& name) {
    return "c" + module + "\n" + name + "\n";
  }
  static std::string tuple(const std::string& values) { return "(" + values + "t"; }
  static std::string call(const std::string& global, const std::string& arguments) {
    return global + tuple(arguments) + "R";
  }
  static std::string dict(const std::string& entries) { return "}(" + entries + "u"; }
  static std::string whole(const std::string& value) { return "\x80\x02" + value + "."; }

  static std::string storage(const std::string& type, const std::string& key, int numbers) {
    return tuple(text("storage") + global("torch", type) + text(key) + text("cpu") + number(numbers)) + "Q";
  }
  // A tensor of float32: sizes and strides as parts of a pickle.
  static std::string tensor(const std::string& storage, int offset, const std::string& sizes,
                            const std::string& strides) {
    return call(global("torch._utils", "_rebuild_tensor_v2"),
                storage + number(offset) + tuple(sizes) + tuple(strides) + "\x89" + ordered_dict());
  }
  static std::string ordered_dict() { return global("collections", "OrderedDict") + ")R"; }
};

}  // namespace tutti
