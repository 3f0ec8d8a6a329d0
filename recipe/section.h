#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "recipe/options.h"

// Sections of a recipe, declared once as kinds are (recipe/options.h): the kind has the section's name.
namespace tutti {

// A member of options that remembers its key in the recipe, for errors.
template <class T>
struct Given {
  T value = {};
  Setting key = {};  // none where the recipe has no value

  Given() = default;
  template <std::convertible_to<T> U = T>
  Given(const U& value) : value(value) {}  // NOLINT: the default of an option
  operator const T&() const { return value; }
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
  template <class U>
  bool operator==(const U& other) const {
    return value == other;
  }
  bool operator==(const Given& other) const { return value == other.value; }

  bool is_absent() const { return key.is_none(); }
  [[noreturn]] void fail(const std::string& message) const { key.fail(message); }
};

template <class T>
struct OptionType<Given<T>> {
  static constexpr KeyType type = OptionType<T>::type;
  static std::string text(const Given<T>& given) { return OptionType<T>::text(given.value); }
  static Given<T> read(const Setting& key) {
    Given<T> given = OptionType<T>::read(key);
    given.key = key;
    return given;
  }
};

// A list that may be written as one number.
struct Numbers {
  std::vector<double> values = {};
  bool empty() const { return values.empty(); }
};

template <>
struct OptionType<Numbers> {
  static constexpr KeyType type = KeyType::kNumberOrNumbers;
  static std::string text(const Numbers&) { return "none"; }
  static Numbers read(const Setting& key) {
    return {key.is_array() ? key.numbers() : std::vector<double>{key.number()}};
  }
};

template <class As = void, class Owner, class E>
Bound<OptionsOf<As, Owner>> option(const char* name, Given<E> Owner::*member, std::string doc,
                                   const std::type_identity_t<NamedValues<Given<E>>>& names) {
  using Options = OptionsOf<As, Owner>;
  auto bound = option<As, Owner, Given<E>>(name, member, std::move(doc), names);
  return {std::move(bound.key), [member, read = std::move(bound.read)](Options& options, const Setting& key) {
            read(options, key);
            (options.*member).key = key;
          }};
}

// The catalog of a section without kinds.
template <class Options>
Catalog section_catalog() {
  Entry entry = Options::kind().entry;
  return {.section = std::move(entry.name),
          .noun = "",
          .doc = std::move(entry.doc),
          .keys = std::move(entry.keys)};
}

}  // namespace tutti
