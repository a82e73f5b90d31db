"""WebAssembly in text, to stand in a module beside its memory and its start: what workers run, and what they do not."""

from __future__ import annotations

PROPOSALS = {
    "tail calls": "(func $f) (func return_call $f)",
    "relaxed SIMD": "(func (param v128 v128 v128) local.get 0 local.get 1 local.get 2 f32x4.relaxed_madd drop)",
    "exceptions": "(tag $t) (func throw $t)",
    "exceptions in a table": "(func (block $b (try_table (catch_all $b))))",
    "references to functions": "(type $f (func)) (elem declare func $g) (func $g) (func ref.func $g call_ref $f)",
    "reference types of a signature": "(func (param externref))",
    "threads": "(func i32.const 0 i32.atomic.load drop)",
    "shared memory": "(memory 1 1 shared)",
    "64-bit tables": "(table i64 1 funcref)",
    "a second memory": "(memory 1)",
    "wide arithmetic": "(func i64.const 1 i64.const 1 i64.const 1 i64.const 1 i64.add128 drop drop)",
    "structs": "(type (struct))",
    "arrays in code": "(type $a (array i8)) (func i32.const 1 array.new_default $a drop)",
    "casts": "(func ref.null func ref.as_non_null drop)",
    "i31": "(func i32.const 1 ref.i31 drop)",
    "stack switching": "(type $f (func)) (type (cont $f))",
}
"""What a compiler may write and no worker runs, by a module of each."""

_V = "v128.const i64x2 1 2"
PLAIN = {
    "blocks": "(func (block (loop (br_if 1 (i32.const 0)) (br 1))) (if (i32.const 1) (then nop) (else nop)))",
    "blocks with values": "(func (drop (block (result i64) (i64.const -1))) "
    "(drop (block (result v128) (v128.const i64x2 1 2))))",
    "blocks of a type": "(type $t (func (param i32) (result i32 i32))) "
    "(func i32.const 1 (block (type $t) i32.const 2) drop drop)",
    "a table of branches": "(func (block (block (block (br_table 0 1 2 1 (i32.const 1))))))",
    "calls": "(table 2 funcref) (func $f) (func (call $f) (call_indirect (i32.const 0)))",
    "numbers": "(func (drop (i32.const -2147483648)) (drop (i64.const 9223372036854775807)) (drop (f32.const nan)) "
    "(drop (f64.const 1e300)))",
    "bytes that look like proposals": "(func (drop (i32.const 0x12)) (drop (i64.const 0xfb)) (drop (f32.const 0.1)) "
    "(drop (v128.const i8x16 0x06 0x12 0x13 0x14 0xfb 0xfe 0xfd 0x80 0x02 0 0 0 0 0 0 0)))",
    "memory": "(func (i32.store offset=70000 align=1 (i32.const 0) (i32.load8_s (i32.const 1))) "
    "(i64.store32 (i32.const 8) (i64.load16_u (i32.const 4))) (drop (memory.grow (memory.size))))",
    "bulk memory": '(data $d "abc") (func (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)) (data.drop $d) '
    "(memory.copy (i32.const 0) (i32.const 1) (i32.const 1)) (memory.fill (i32.const 0) (i32.const 0) (i32.const 1)))",
    "tables": "(table $t 4 funcref) (elem $e func $f) (func $f) (func (table.init $t $e (i32.const 0) (i32.const 0) "
    "(i32.const 1)) (elem.drop $e) (table.copy (i32.const 0) (i32.const 1) (i32.const 1)) (drop (table.size $t)) "
    "(drop (table.grow $t (ref.null func) (i32.const 1))) (table.fill (i32.const 0) (ref.func $f) (i32.const 1)) "
    "(table.set (i32.const 0) (table.get (i32.const 1))) (drop (ref.is_null (ref.func $f))))",
    "globals": "(global $g (mut i64) (i64.const 5)) (func (global.set $g (i64.add (global.get $g) (i64.const 1))))",
    "saturating": "(func (drop (i32.trunc_sat_f64_u (f64.const 1))) (drop (i64.extend8_s (i64.const 1))))",
    "select": "(func (drop (select (result i64) (i64.const 1) (i64.const 2) (i32.const 0))) "
    "(drop (select (i32.const 1) (i32.const 2) (i32.const 0))))",
    "locals": "(func (local i32 i64 f32 f64 v128 funcref) (local.set 0 (local.tee 0 (i32.const 3))))",
    "vectors": f"(func (drop (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 ({_V}) ({_V}))) "
    f"(drop (i8x16.extract_lane_s 7 ({_V}))) (drop (f64x2.replace_lane 1 ({_V}) (f64.const 1))) "
    f"(drop (v128.load8x8_s offset=3 (i32.const 0))) (drop (v128.load64_zero (i32.const 0))) "
    f"(drop (v128.load16_lane 3 (i32.const 0) ({_V}))) (v128.store64_lane 1 (i32.const 0) ({_V})) "
    f"(v128.store (i32.const 0) (i32x4.dot_i16x8_s ({_V}) ({_V}))) (drop (f64x2.convert_low_i32x4_u ({_V}))) "
    f"(drop (i64x2.all_true ({_V}))))",
}
"""Every kind of instruction that workers run, with what follows it."""
