#pragma once

#include <functional>
#include <utility>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// Makes the component of a section with kind = "plugin". load_plugin (job/plugin_library.h) gives a maker to
// the section's `kind`, which keeps the maker in copies and further resolutions of the section. So the
// factories of losses, metrics, transforms, optimizers and schedules make a plugin's too.
class PluginMaker {
 public:
  virtual ~PluginMaker() = default;
};

template <class Made, class... Arguments>
class PluginMakerOf final : public PluginMaker {
 public:
  // Makes the component of a resolved section. Throws UserError.
  using Make = std::function<Made(const Setting& section, const Arguments&... arguments)>;

  explicit PluginMakerOf(Make make) : make_(std::move(make)) {}
  Made make(const Setting& section, const Arguments&... arguments) const {
    return make_(section, arguments...);
  }

 private:
  Make make_;
};

inline bool is_of_plugin(const Setting& section) { return section.at("kind").text() == kPluginKind; }

// The component of a section with kind = "plugin". Throws UserError if making fails, or if no library is
// loaded.
template <class Made, class... Arguments>
Made made_by_plugin(const Setting& section, const Arguments&... arguments) {
  const Setting& kind = section.at("kind");
  const auto* maker = dynamic_cast<const PluginMakerOf<Made, Arguments...>*>(kind.maker.get());
  if (!maker) kind.fail("no library of [plugins] is loaded");
  return maker->make(section, arguments...);
}

}  // namespace tutti
