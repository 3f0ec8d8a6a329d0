#include "models/script/stored.h"

#include <ATen/core/class_type.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>

#include "io/weights/script_file.h"
#include "models/script/code_check.h"
#include "models/script/load_scope.h"
#include "runtime/error.h"
#include "tensors/device.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"
#include "tensors/tree.h"

namespace tutti::script {
namespace {

// libtorch shows the code around an error too.
std::string first_sentence(const std::string& words) {
  constexpr std::string_view kCode = ":   File \"";
  return words.substr(0, words.find(kCode));
}

}  // namespace

c10::IValue load(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) throw UserError("there is no file '" + path + "'");
  try {
    for (const ScriptCode& code : read_script_code(path)) require_plain(code);
    const LoadScope bounded;
    return torch::jit::load(path, Device().where)._ivalue();
  } catch (const UserError& error) {
    throw UserError({path}, error.message());
  } catch (const std::exception& error) {
    if (is_lack_of_memory(error)) throw;
    throw UserError({path}, "it is no whole file of torch.jit.save: " + first_sentence(own_words(error)));
  }
}

void Stored::collect(const c10::IValue& module, const std::string& prefix) {
  const Object object = module.toObject();
  for (std::size_t i = 0; i < object->type()->numAttributes(); ++i) {
    const c10::IValue& value = object->getSlot(i);
    const std::string name = prefix + object->type()->getAttributeName(i);
    if (value.isTensor())
      tensors_[name] = value.toTensor();
    else if (value.isObject() && value.toObjectRef().type()->is_module())
      collect(value, name + ".");
  }
}

void Stored::read(const std::string& name, at::Tensor& to) {
  const std::lock_guard lock(mutex_);
  if (!tensors_.contains(name)) collect(load(path_), "");
  const auto stored = tensors_.find(name);
  if (stored == tensors_.end() || stored->second.sizes() != to.sizes())
    throw UserError(path_ + " has changed: it has no '" + name + "' " + shape_text(to.sizes()));
  const at::NoGradGuard no_gradients;
  to.copy_(stored->second);
  tensors_.erase(stored);
}

}  // namespace tutti::script
