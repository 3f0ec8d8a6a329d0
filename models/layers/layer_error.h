#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "runtime/error.h"

namespace tutti {

// A mistake in a forward pass and its place in the model: "in head (Linear 24 -> 3): mat1 and mat2 shapes
// cannot be multiplied (12x48 and 24x3)". The path names the called slots, down to the innermost layer.
class LayerError final : public UserError {
 public:
  struct Place {
    std::string path;
    std::string layer;  // kind and sizes
    Position position;  // of the recipe, if known
    std::string words;  // the error's own
  };
  explicit LayerError(const Place& place);
  // An error that already names the place: slots pass the error on unchanged.
  explicit LayerError(const std::string& message) : UserError(message) {}

  const std::optional<Place>& place() const { return place_; }

 private:
  std::optional<Place> place_;
};

// Throws the error of the layer in the slot of this name, as a LayerError for a mistake: libtorch's, a
// UserError, or an exception of the standard library. Call within the catch block: a lack of memory, failures
// of the environment and of devices, and exceptions that end or repeat a step are thrown on unchanged.
[[noreturn]] void throw_from_slot(const std::string& slot, const std::function<std::string()>& layer,
                                  const std::exception& error);

// The same for a model's own functions: "in `place`: ...". RunErrors are thrown on unchanged.
[[noreturn]] void throw_from_model(const std::string& place, const std::exception& error);

}  // namespace tutti
