#include "io/weights/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>

#include "io/weights/pickle_objects.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr uint64_t kMemoBytes = 48;  // of a place in the map of remembered values

static_assert(std::endian::native == std::endian::little, "pickles hold little-endian numbers");

template <class Item>
uint64_t bytes_of(const std::vector<Item>& items) {
  return items.size() * sizeof(Item);
}

// The memory that a value takes; values that it points to not counted.
struct ValueBytes {
  uint64_t operator()(const std::string& text) const { return text.size(); }
  uint64_t operator()(const PickledList& list) const { return bytes_of(list.values); }
  uint64_t operator()(const PickledDict& dict) const { return bytes_of(dict.entries); }
  uint64_t operator()(const PickledGlobal& global) const { return global.name.size(); }
  uint64_t operator()(const PickledStorage& storage) const { return storage.key.size(); }
  uint64_t operator()(const PickledTensor& tensor) const {
    return tensor.storage.key.size() + bytes_of(tensor.shape) + bytes_of(tensor.strides);
  }
  uint64_t operator()(const PickledObject& object) const { return bytes_of(object.arguments); }
  template <class Plain>
  uint64_t operator()(const Plain&) const {
    return 0;
  }
};

// The pickle machine of Python's pickletools, as far as state dicts use it.
class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& path, const PickledObjects& objects,
          std::deque<PickledValue>& values)
      : bytes_(bytes), path_(path), objects_(objects), values_(values), memory_(bytes.size()) {}

  const PickledValue* run() {
    for (;;) {
      opcode_at_ = at_;
      const char opcode = number<char>();
      if (opcode == '.') return pop();
      if (!push_plain(opcode) && !collect(opcode) && !remember(opcode) && !make(opcode))
        fail("there is the opcode " + std::to_string(static_cast<unsigned char>(opcode)) +
             ", which no state dict has");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError({path_}, "byte " + std::to_string(opcode_at_) + " of its pickle: " + what);
  }

  std::string_view text(uint64_t length) {
    if (length > bytes_.size() - at_) fail("the pickle ends too early");
    const auto* start = reinterpret_cast<const char*>(bytes_.data()) + at_;
    at_ += length;
    return {start, length};
  }

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, text(sizeof value).data(), sizeof value);
    return value;
  }

  std::string line() {
    const std::string_view all(reinterpret_cast<const char*>(bytes_.data()) + at_, bytes_.size() - at_);
    const std::size_t length = all.find('\n');
    if (length == all.npos) fail("the pickle ends within a name");
    return std::string(text(length + 1).substr(0, length));
  }

  // A little-endian number of two's complement; numbers of more than 8 bytes are no sizes.
  PickledValue long_number(uint64_t length) {
    const std::string_view digits = text(length);
    if (length > 8) return {};
    uint64_t value = length > 0 && (digits.back() & 0x80) ? ~uint64_t{0} : 0;
    for (std::size_t i = 0; i < length; ++i) {
      value &= ~(uint64_t{0xff} << (8 * i));
      value |= uint64_t{static_cast<unsigned char>(digits[i])} << (8 * i);
    }
    return {static_cast<int64_t>(value)};
  }

  double big_endian_number() {
    std::string bytes(text(sizeof(double)));
    std::ranges::reverse(bytes);
    double value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  void take(uint64_t bytes) {
    if (!memory_.take(bytes)) fail(kTooManyObjects);
  }

  bool push(PickledValue value) {
    take(sizeof(PickledValue) + std::visit(ValueBytes(), value.value));
    stack_.push_back(&values_.emplace_back(std::move(value)));
    return true;
  }

  // Not below the last mark.
  PickledValue* pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("a value is missing");
    PickledValue* top = stack_.back();
    stack_.pop_back();
    return top;
  }

  std::vector<PickledValue*> pop_to_mark() {
    if (marks_.empty()) fail("a mark is missing");
    std::vector<PickledValue*> popped(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                      stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return popped;
  }

  std::vector<PickledValue*> pop(std::size_t count) {
    std::vector<PickledValue*> popped(count);
    for (; count > 0; --count) popped[count - 1] = pop();
    return popped;
  }

  template <class Kind>
  Kind& top(const char* what) {
    PickledValue* value = pop();
    stack_.push_back(value);
    Kind* kind = std::get_if<Kind>(&value->value);
    if (!kind) fail(std::string("expected ") + what);
    return *kind;
  }

  // Values that are there as they are. False: the opcode is none of these.
  bool push_plain(char opcode) {
    switch (opcode) {
      case 'N':
        return push({});
      case '\x88':
        return push({true});
      case '\x89':
        return push({false});
      case 'G':
        return push({big_endian_number()});
      case 'J':
        return push({int64_t{number<int32_t>()}});
      case 'K':
        return push({int64_t{number<uint8_t>()}});
      case 'M':
        return push({int64_t{number<uint16_t>()}});
      case '\x8a':
        return push(long_number(number<uint8_t>()));
      case '\x8b':
        return push(long_number(number<uint32_t>()));
      case 'T':
      case 'B':
      case 'X':
        return push({std::string(text(number<uint32_t>()))});
      case 'U':
      case 'C':
      case '\x8c':
        return push({std::string(text(number<uint8_t>()))});
      case '\x8d':
      case '\x8e':
        return push({std::string(text(number<uint64_t>()))});
      default:
        return false;
    }
  }

  bool collect(char opcode) {
    switch (opcode) {
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '0':
        pop();
        return true;
      case '1':
        pop_to_mark();
        return true;
      case '}':
        return push({PickledDict()});
      case ']':
      case ')':
      case '\x8f':
        return push({PickledList()});  // [], (), set()
      case 't':
      case 'l':
        return push({PickledList{pop_to_mark()}});
      case '\x85':
        return push({PickledList{pop(1)}});
      case '\x86':
        return push({PickledList{pop(2)}});
      case '\x87':
        return push({PickledList{pop(3)}});
      case 'd':
        return push({dict_of(pop_to_mark())});
      case 'a':
        return append(pop(1));
      case 'e':
      case '\x90':
        return append(pop_to_mark());
      case 's':
        return add(pop(2));
      case 'u':
        return add(pop_to_mark());
      default:
        return false;
    }
  }

  bool append(const std::vector<PickledValue*>& values) {
    auto& list = top<PickledList>("a list").values;
    take(bytes_of(values));
    list.insert(list.end(), values.begin(), values.end());
    return true;
  }

  PickledDict dict_of(const std::vector<PickledValue*>& pairs) const {
    if (pairs.size() % 2 != 0) fail("a key has no value");
    PickledDict dict;
    for (std::size_t i = 0; i < pairs.size(); i += 2) dict.entries.emplace_back(pairs[i], pairs[i + 1]);
    return dict;
  }

  bool add(const std::vector<PickledValue*>& pairs) {
    const PickledDict added = dict_of(pairs);
    auto& entries = top<PickledDict>("a dict").entries;
    take(bytes_of(added.entries));
    entries.insert(entries.end(), added.entries.begin(), added.entries.end());
    return true;
  }

  bool remember(char opcode) {
    switch (opcode) {
      case '\x80':
        number<uint8_t>();
        return true;  // the protocol
      case '\x95':
        number<uint64_t>();
        return true;  // a frame
      case 'q':
        return keep(number<uint8_t>());
      case 'r':
        return keep(number<uint32_t>());
      case '\x94':
        return keep(static_cast<uint32_t>(memo_.size()));
      case 'h':
        return recall(number<uint8_t>());
      case 'j':
        return recall(number<uint32_t>());
      default:
        return false;
    }
  }

  // libtorch, which reads a script's pickle once more, makes places up to the index.
  bool keep(uint32_t index) {
    if (index >= bytes_.size()) fail("value " + std::to_string(index) + " is one of more than it can have");
    PickledValue* value = pop();
    stack_.push_back(value);
    take(kMemoBytes);
    memo_[index] = value;
    return true;
  }

  bool recall(uint32_t index) {
    const auto value = memo_.find(index);
    if (value == memo_.end()) fail("value " + std::to_string(index) + " is used before it is there");
    stack_.push_back(value->second);
    return true;
  }

  bool make(char opcode) {
    switch (opcode) {
      case 'c':
        return name_in(line());
      case '\x93':
        return name(pop(2));
      case 'Q':
        return push(checked([&] { return storage_of(*pop()); }));
      case 'R':
      case '\x81':
        return call(pop(2));
      case 'b':
        return set_attributes(pop(2));
      default:
        return false;
    }
  }

  // Such as a state dict's _metadata, or those of a module. libtorch takes a number here for a function.
  bool set_attributes(const std::vector<PickledValue*>& two) {
    PickledValue& object = *two[0];
    if (auto* known = std::get_if<PickledObject>(&object.value)) known->attributes = two[1];
    if (std::holds_alternative<PickledGlobal>(object.value) || std::holds_alternative<int64_t>(object.value))
      fail("attributes of what is no object");
    stack_.push_back(&object);
    return true;
  }

  template <class Function>
  PickledValue checked(const Function& function) const try {
    return function();
  } catch (const std::invalid_argument& error) {
    fail(error.what());
  }

  bool name_in(const std::string& module) { return name(module, line()); }

  bool name(const std::string& module, const std::string& object) {
    const std::string global = module + "." + object;
    if (!objects_.has(global)) fail("it wants to run '" + global + "' of Python, " + objects_.others);
    return push({PickledGlobal{global}});
  }

  bool name(const std::vector<PickledValue*>& two) {
    const auto* module = std::get_if<std::string>(&two[0]->value);
    const auto* object = std::get_if<std::string>(&two[1]->value);
    if (!module || !object) fail("a Python object has no name");
    return name(*module, *object);
  }

  bool call(const std::vector<PickledValue*>& two) {
    const auto* global = std::get_if<PickledGlobal>(&two[0]->value);
    const auto* arguments = std::get_if<PickledList>(&two[1]->value);
    if (!global) fail("a call of what is no Python object");
    const std::vector<PickledValue*> alone{two[1]};  // the value of an enumeration
    return push(checked([&]() -> PickledValue {
      try {
        return objects_.called(global->name, arguments ? arguments->values : alone);
      } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(global->name + ": " + error.what());
      }
    }));
  }

  std::span<const std::byte> bytes_;
  const std::string& path_;
  const PickledObjects& objects_;
  std::deque<PickledValue>& values_;
  uint64_t at_ = 0;
  uint64_t opcode_at_ = 0;
  std::vector<PickledValue*> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::map<uint32_t, PickledValue*> memo_;
  ObjectMemory memory_;
};

}  // namespace

const PickledValue* PickledDict::find(std::string_view key) const {
  const PickledValue* last = nullptr;
  for (const auto& [name, value] : entries) {
    const auto* text = std::get_if<std::string>(&name->value);
    if (text && *text == key) last = value;
  }
  return last;
}

ObjectMemory::ObjectMemory(uint64_t pickle_bytes)
    : left_(std::min(kMostBytes, kLeastBytes + std::min(kMostBytes, pickle_bytes) * kBytesAByte)) {}

bool ObjectMemory::take(uint64_t bytes) {
  if (bytes > left_) return false;
  left_ -= bytes;
  return true;
}

Pickle::Pickle(std::span<const std::byte> bytes, const std::string& path, const PickledObjects& objects)
    : root_(Machine(bytes, path, objects, values_).run()), bytes_(bytes.size()) {}

}  // namespace tutti
