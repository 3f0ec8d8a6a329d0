#include "models/layers/layer_error.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <typeinfo>
#include <utility>

#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

// Devices have types of their own for their failures.
bool is_mistake_by_libtorch(const c10::Error& error) {
  const std::array known{&typeid(c10::Error), &typeid(c10::IndexError), &typeid(c10::ValueError),
                         &typeid(c10::TypeError), &typeid(c10::NotImplementedError)};
  return std::ranges::any_of(known, [&](const auto* one) { return *one == typeid(error); });
}

bool is_mistake(const std::exception& error) {
  if (const auto* known = dynamic_cast<const RunError*>(&error))
    return typeid(error) == typeid(UserError) && known->kind() == EndKind::kUserError;
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return (!torch || is_mistake_by_libtorch(*torch)) && !is_lack_of_memory(error);
}

std::string joined_path(const std::string& path, const std::string& below) {
  return path.empty() || below.empty() ? path + below : path + "." + below;
}

std::string place_text(const std::string& path, const std::string& layer) {
  return "in " + (path.empty() ? layer : path + " (" + layer + ")") + ": ";
}

}  // namespace

LayerError::LayerError(const Place& place)
    : UserError(place.position, place_text(place.path, place.layer) + place.words), place_(place) {}

void throw_from_slot(const std::string& slot, const std::function<std::string()>& layer,
                     const std::exception& error) {
  if (const auto* inner = dynamic_cast<const LayerError*>(&error)) {
    if (!inner->place()) throw;
    LayerError::Place place = *inner->place();
    place.path = joined_path(slot, place.path);
    throw LayerError(place);
  }
  if (!is_mistake(error)) throw;
  const auto* known = dynamic_cast<const RunError*>(&error);
  throw LayerError(LayerError::Place{.path = slot,
                                     .layer = layer(),
                                     .position = known ? known->position() : Position{},
                                     .words = known ? known->message() : own_words(error)});
}

void throw_from_model(const std::string& place, const std::exception& error) {
  if (dynamic_cast<const RunError*>(&error) || !is_mistake(error)) throw;
  throw LayerError("in " + place + ": " + own_words(error));
}

}  // namespace tutti
