#pragma once

#include <cstddef>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tutti {

// A value of any message type. Moves between actors without allocation if the value fits in kInlineBytes.
//
// A message type is a movable struct with `static constexpr const char* kName`. Optional members:
// - `static constexpr bool kReserved = true`: goes to the mailbox's reserved queue; sending never blocks
// - `static constexpr bool kIncidental = true`: depends on the clock, is not recorded, changes no result
// - `std::string_view label() const`: distinguishes messages of one type in records, where the order in which
//   one actor sends them is not deterministic
class Message {
 public:
  static constexpr std::size_t kInlineBytes = 48;

  Message() = default;
  template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, Message>>>
  Message(T&& value);  // NOLINT: implicit
  Message(Message&& other) noexcept { move_from(other); }
  Message& operator=(Message&& other) noexcept;
  ~Message() { reset(); }

  // The value if its type is T, else null. Types are compared by address, so only within one binary.
  template <class T>
  T* get_if();

  bool empty() const { return type_ == nullptr; }
  const char* name() const { return type_ ? type_->name : "nothing"; }
  // The name in records; lives as long as the value.
  std::string_view label() const { return type_ ? type_->label(value()) : "nothing"; }
  bool reserved() const { return type_ != nullptr && type_->reserved; }
  bool incidental() const { return type_ != nullptr && type_->incidental; }
  void reset();

 private:
  struct Type {
    const char* name;
    bool reserved;
    bool incidental;
    bool heap;
    std::string_view (*label)(const void* value);
    void (*relocate)(void* to, void* from);
    void (*destroy)(void* at);
  };
  template <class T>
  static const Type kTypeOf;
  template <class T>
  static constexpr bool fits() {
    return sizeof(T) <= kInlineBytes && alignof(T) <= alignof(std::max_align_t) &&
           std::is_nothrow_move_constructible_v<T>;
  }
  template <class T>
  static constexpr bool is_reserved() {
    if constexpr (requires { T::kReserved; }) return T::kReserved;
    return false;
  }
  template <class T>
  static constexpr bool is_incidental() {
    if constexpr (requires { T::kIncidental; }) return T::kIncidental;
    return false;
  }
  template <class T>
  static std::string_view label_of(const void* value) {
    if constexpr (requires(const T& t) { t.label(); }) return static_cast<const T*>(value)->label();
    return T::kName;
  }
  const void* value() const { return type_->heap ? *reinterpret_cast<void* const*>(bytes_) : bytes_; }
  void move_from(Message& other) noexcept;

  const Type* type_ = nullptr;
  alignas(std::max_align_t) unsigned char bytes_[kInlineBytes];
};

template <class T>
const Message::Type Message::kTypeOf = {T::kName,
                                        is_reserved<T>(),
                                        is_incidental<T>(),
                                        !fits<T>(),
                                        label_of<T>,
                                        [](void* to, void* from) {
                                          if constexpr (fits<T>()) {
                                            new (to) T(std::move(*static_cast<T*>(from)));
                                            static_cast<T*>(from)->~T();
                                          } else {
                                            *static_cast<T**>(to) = *static_cast<T**>(from);
                                          }
                                        },
                                        [](void* at) {
                                          if constexpr (fits<T>()) {
                                            static_cast<T*>(at)->~T();
                                          } else {
                                            delete *static_cast<T**>(at);
                                          }
                                        }};

template <class T, class>
Message::Message(T&& value) {
  using V = std::decay_t<T>;
  if constexpr (fits<V>()) {
    new (bytes_) V(std::forward<T>(value));
  } else {
    *reinterpret_cast<V**>(bytes_) = new V(std::forward<T>(value));
  }
  type_ = &kTypeOf<V>;
}

template <class T>
T* Message::get_if() {
  if (type_ != &kTypeOf<T>) return nullptr;
  return type_->heap ? *reinterpret_cast<T**>(bytes_) : reinterpret_cast<T*>(bytes_);
}

inline void Message::reset() {
  if (type_) type_->destroy(bytes_);
  type_ = nullptr;
}

inline void Message::move_from(Message& other) noexcept {
  type_ = other.type_;
  if (type_) type_->relocate(bytes_, other.bytes_);
  other.type_ = nullptr;
}

inline Message& Message::operator=(Message&& other) noexcept {
  if (this != &other) {
    reset();
    move_from(other);
  }
  return *this;
}

}  // namespace tutti
