#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/setting.h"

// The options of a kind, declared once: a struct with a member for each key, and a function kind() that binds
// the keys to the members, as in algorithms/loop/options.cpp. The declaration gives the catalog's entry with
// names, types, defaults and bounds, and reads a section of a resolved recipe. Free of libtorch, as catalogs
// are: options and their declarations are linked into the thin executable.
namespace tutti {

// The form of a member of type T in a recipe. Specialise the form beside your own type (Time, BatchKey).
template <class T>
struct OptionType;

std::string option_text(double value);  // the shortest that reads back: "0.2", "1", "1e-12"

template <>
struct OptionType<bool> {
  static constexpr KeyType type = KeyType::kBoolean;
  static std::string text(bool value) { return value ? "true" : "false"; }
  static bool read(const Setting& key) { return key.boolean(); }
};
template <std::integral T>
struct OptionType<T> {
  static constexpr KeyType type = KeyType::kInteger;
  static std::string text(T value) { return std::to_string(value); }
  static T read(const Setting& key) { return static_cast<T>(key.integer()); }
};
template <>
struct OptionType<double> {
  static constexpr KeyType type = KeyType::kNumber;
  static std::string text(double value) { return option_text(value); }
  static double read(const Setting& key) { return key.number(); }
};
template <>
struct OptionType<std::string> {
  static constexpr KeyType type = KeyType::kText;
  static std::string text(const std::string& value) { return value; }
  static std::string read(const Setting& key) { return key.text(); }
};
template <>
struct OptionType<std::vector<int64_t>> {
  static constexpr KeyType type = KeyType::kIntegers;
  static std::string text(const std::vector<int64_t>& values);
  static std::vector<int64_t> read(const Setting& key) { return key.integers(); }
};
template <>
struct OptionType<std::vector<double>> {
  static constexpr KeyType type = KeyType::kNumbers;
  static std::string text(const std::vector<double>& values);
  static std::vector<double> read(const Setting& key) { return key.numbers(); }
};
template <>
struct OptionType<std::vector<std::string>> {
  static constexpr KeyType type = KeyType::kTexts;
  static std::string text(const std::vector<std::string>& values);
  static std::vector<std::string> read(const Setting& key) { return key.texts(); }
};
// A value that the kind reads without a binding.
template <>
struct OptionType<Setting> {
  static constexpr KeyType type = KeyType::kAny;
  static std::string text(const Setting&) { return "none"; }
  static Setting read(const Setting& key) { return key; }
};
// May be absent.
template <class T>
struct OptionType<std::optional<T>> {
  static constexpr KeyType type = OptionType<T>::type;
  static std::string text(const std::optional<T>& value) {
    return value ? OptionType<T>::text(*value) : "none";
  }
  static std::optional<T> read(const Setting& key) { return OptionType<T>::read(key); }
};

// A key of a kind, and its way into the kind's options.
template <class Options>
struct Bound {
  using Read = std::function<void(Options&, const Setting&)>;

  Key key;
  Read read;  // empty: the key is read elsewhere, or refused

  Bound(Key key, Read read = {})  // NOLINT: a key that is not bound
      : key(std::move(key)), read(std::move(read)) {}

  // With "none" as default, the member keeps its initial value.
  Bound may_be_absent() && {
    return with([](Key& k) { k.fallback = "none"; });
  }
  Bound required() && {
    return with([](Key& k) { k.fallback.clear(); });
  }
  // The default, where its usual text is not the one wanted: "1.0".
  Bound written(const std::string& text) && {
    return with([&](Key& k) { k.fallback = text; });
  }
  Bound as(KeyType type) && {
    return with([&](Key& k) { k.type = type; });
  }

  // Like the builders of Key.
  Bound also_named(std::vector<std::string> names) && { return with(&Key::also_named, std::move(names)); }
  Bound one_of(std::vector<std::string> values) && { return with(&Key::one_of, std::move(values)); }
  Bound also_written(std::vector<std::pair<std::string, std::string>> names) && {
    return with(&Key::also_written, std::move(names));
  }
  // The name of a kind of this catalog, or a table of that kind.
  Bound each(std::shared_ptr<const Catalog> table) && {
    return with([&](Key& k) {
      k.type = KeyType::kKindOrTable;
      k.tables = std::move(table);
    });
  }
  Bound or_word(std::string word) && { return with(&Key::or_word, std::move(word)); }
  Bound in_units(std::vector<std::string> names) && { return with(&Key::in_units, std::move(names)); }
  Bound at_least(double value) && { return with(&Key::at_least, value); }
  Bound more_than(double value) && { return with(&Key::more_than, value); }
  Bound at_most(double value) && { return with(&Key::at_most, value); }
  Bound less_than(double value) && { return with(&Key::less_than, value); }

 private:
  template <class Change>
  Bound with(const Change& change) {
    change(key);
    return std::move(*this);
  }
  template <class Value>
  Bound with(Key (Key::*builder)(Value) &&, Value value) {
    key = (std::move(key).*builder)(std::move(value));
    return std::move(*this);
  }
};

// The keys of both lists.
template <class Options>
std::vector<Bound<Options>> with_keys(std::vector<Bound<Options>> keys,
                                      const std::vector<Bound<Options>>& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// Binds a key to a member: its type is the member's, its default the member's initial value. For a member of
// a base of the options, `As` is the options: option<MixUpOptions>("input_key",
// &SampleMixingOptions::input_key).
template <class As, class Owner>
using OptionsOf = std::conditional_t<std::is_void_v<As>, Owner, As>;

template <class As = void, class Owner, class T>
Bound<OptionsOf<As, Owner>> option(const char* name, T Owner::*member, std::string doc) {
  using Options = OptionsOf<As, Owner>;
  return {Key{name, OptionType<T>::type, OptionType<T>::text(Options().*member), std::move(doc)},
          [member](Options& options, const Setting& key) { options.*member = OptionType<T>::read(key); }};
}

// The same for a member of an enum, whose values have these names.
template <class E>
using NamedValues = std::vector<std::pair<const char*, E>>;

template <class As = void, class Owner, class E>
Bound<OptionsOf<As, Owner>> option(const char* name, E Owner::*member, std::string doc,
                                   const std::type_identity_t<NamedValues<E>>& names) {
  using Options = OptionsOf<As, Owner>;
  Key key{name, KeyType::kText, "", std::move(doc)};
  for (const auto& [text, value] : names) {
    key.choices.emplace_back(text);
    if (key.fallback.empty() && value == Options().*member) key.fallback = text;
  }
  return {std::move(key), [member, names](Options& options, const Setting& setting) {
            for (const auto& [text, value] : names)
              if (setting.text() == text) options.*member = value;
          }};
}

// A kind of algorithm, dataset, ...: its entry in the catalog, and its options.
template <class Options>
struct Kind {
  Entry entry;
  std::vector<Bound<Options>> keys;

  Kind(std::string name, std::string doc, std::vector<Bound<Options>> bound = {}, Origin origin = {})
      : entry{.name = std::move(name), .doc = std::move(doc), .origin = std::move(origin)},
        keys(std::move(bound)) {
    for (const auto& bound : keys) entry.keys.push_back(bound.key);
  }

  // The options of a resolved section.
  Options read(const Setting& section) const {
    Options options;
    for (const auto& bound : keys)
      if (bound.read && section.has(bound.key.name)) bound.read(options, section.at(bound.key.name));
    return options;
  }
};

// A file or folder that a section writes.
struct WrittenFile {
  const char* key;       // names it in messages
  std::string path;      // in the run's folder unless absolute; {run_name} and {rank} are replaced
  bool by_rank = false;  // each rank writes its own
  bool is_folder = false;
};

// A list of kinds, each named by its options, from which catalog and factory are made. Options have a static
// kind(), and make(section, ...), which gets the factory's further arguments; written(), if an option names a
// file to write.
template <class... Options>
struct Kinds {
  static std::vector<Entry> entries() { return {Options::kind().entry...}; }

  // The object made for the section's kind; null if this list does not have the kind.
  template <class Made, class... Args>
  static Made made(const Setting& section, const Args&... args) {
    return with_options<Made>(section, [&](const auto& options) { return options.make(section, args...); });
  }

  // The file that the section's kind writes, or none.
  static std::optional<WrittenFile> written(const Setting& section) {
    return with_options<std::optional<WrittenFile>>(section, [](const auto& options) {
      if constexpr (requires { options.written(); })
        return options.written();
      else
        return std::nullopt;
    });
  }

 private:
  // The result of `work` for the options of the section; an empty result for a kind of another list.
  template <class Result, class Work>
  static Result with_options(const Setting& section, const Work& work) {
    Result result{};
    const auto is_kind = [&]<class One>(const Kind<One>& kind) {
      if (kind.entry.name != section.at("kind").text()) return false;
      result = work(kind.read(section));
      return true;
    };
    (is_kind(kind_of<Options>()) || ...);
    return result;
  }

  template <class One>
  static const Kind<One>& kind_of() {
    static const Kind<One> kind = One::kind();
    return kind;
  }
};

}  // namespace tutti
