"""Writes tiny models that a real engine loads, and whose next word is certain.

Every token's embedding is a direction of its own, the layers add nothing to it, and the output matrix
maps each direction to the token that follows. So the answer to anything is one fixed
English sentence, and a draft by the MTP head is always right: accepted drafts, valid
text and reproducible answers without a trained model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

SENTENCE = (
    "This small model that knows one sentence by heart says it again whenever somebody asks and every draft of its "
    "own head is right because nothing else can follow after these words until they end here."
)
"""What every tiny model answers; no word comes twice, so that each word decides the next."""

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
EMBEDDING = 320
SHARPNESS = 4.0
"""The next token's logit is this times sqrt(EMBEDDING), about 70 above all others."""

TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@dataclass(frozen=True)
class Tiny:
    """Dimensions of a tiny model."""

    architecture: str = "qwen35"
    blocks: int = 4
    mtp: int = 1
    heads: int = 4
    kv_heads: int = 2
    head: int = 64
    ff: int = 384
    trained_context: int = 32768
    conv_kernel: int = 4
    state: int = 64
    groups: int = 4
    value_heads: int = 8

    @property
    def inner(self) -> int:
        return self.state * self.value_heads

    @property
    def conv_width(self) -> int:
        return self.inner + 2 * self.groups * self.state


def _byte_tokens() -> list[str]:
    """The 256 printable stand-ins of byte-level BPE."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(shifted)) for byte in range(256)]


def _words() -> list[str]:
    words = SENTENCE.split(" ")
    return [word if number == 0 else "\u0120" + word for number, word in enumerate(words)]


def vocabulary() -> list[str]:
    """All tokens: specials, bytes, then the sentence's words, filled up to one row per direction."""
    tokens = [*SPECIALS, *_byte_tokens(), *_words()]
    tokens += [f"<|unused_{number}|>" for number in range(EMBEDDING - len(tokens))]
    assert len(set(tokens)) == EMBEDDING
    return tokens


def _next_tokens() -> list[int]:
    """For each token the one that follows: the sentence's next word, its end, or its first word."""
    tokens = vocabulary()
    first = len(SPECIALS) + 256
    words = len(_words())
    follows = [first] * len(tokens)
    for number in range(words - 1):
        follows[first + number] = first + number + 1
    follows[first + words - 1] = tokens.index("<|im_end|>")
    return follows


def _token_types() -> list[int]:
    control, normal, unused = 3, 1, 5
    types = [control] * len(SPECIALS) + [normal] * (256 + len(_words()))
    return types + [unused] * (EMBEDDING - len(types))


def _metadata(writer: gguf.GGUFWriter, tiny: Tiny) -> None:
    writer.add_name(f"Tiny {tiny.architecture}")
    writer.add_block_count(tiny.blocks + tiny.mtp)
    writer.add_context_length(tiny.trained_context)
    writer.add_embedding_length(EMBEDDING)
    writer.add_feed_forward_length(tiny.ff)
    writer.add_head_count(tiny.heads)
    writer.add_head_count_kv(tiny.kv_heads)
    writer.add_key_length(tiny.head)
    writer.add_value_length(tiny.head)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(tiny.head)
    if tiny.architecture == "qwen35":
        arch = tiny.architecture
        writer.add_array(f"{arch}.rope.dimension_sections", [11, 11, 10, 0])
        writer.add_uint32(f"{arch}.ssm.conv_kernel", tiny.conv_kernel)
        writer.add_uint32(f"{arch}.ssm.inner_size", tiny.inner)
        writer.add_uint32(f"{arch}.ssm.state_size", tiny.state)
        writer.add_uint32(f"{arch}.ssm.time_step_rank", tiny.value_heads)
        writer.add_uint32(f"{arch}.ssm.group_count", tiny.groups)
        writer.add_uint32(f"{arch}.full_attention_interval", 4)
        if tiny.mtp:
            writer.add_uint32(f"{arch}.nextn_predict_layers", tiny.mtp)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(vocabulary())
    writer.add_token_types(_token_types())
    writer.add_token_merges(["\u0120 \u0120"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(SPECIALS.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


Tensors = Iterator[tuple[str, np.ndarray]]


def _matrix(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    return (rng.standard_normal((rows, columns)) * 0.02).astype(np.float16)


def _silent(rows: int, columns: int) -> np.ndarray:
    """A projection back into the residual stream that adds nothing."""
    return np.zeros((rows, columns), np.float16)


def _ones(width: int) -> np.ndarray:
    return np.ones(width, np.float32)


def _feed_forward(rng: np.random.Generator, tiny: Tiny, block: int) -> Tensors:
    yield f"blk.{block}.ffn_gate.weight", _matrix(rng, tiny.ff, EMBEDDING)
    yield f"blk.{block}.ffn_up.weight", _matrix(rng, tiny.ff, EMBEDDING)
    yield f"blk.{block}.ffn_down.weight", _silent(EMBEDDING, tiny.ff)


def _attention(rng: np.random.Generator, tiny: Tiny, block: int, gate: int) -> Tensors:
    query, kv = tiny.heads * tiny.head, tiny.kv_heads * tiny.head
    yield f"blk.{block}.attn_norm.weight", _ones(EMBEDDING)
    yield f"blk.{block}.attn_q.weight", _matrix(rng, query * gate, EMBEDDING)
    yield f"blk.{block}.attn_k.weight", _matrix(rng, kv, EMBEDDING)
    yield f"blk.{block}.attn_v.weight", _matrix(rng, kv, EMBEDDING)
    yield f"blk.{block}.attn_output.weight", _silent(EMBEDDING, query)


def _gated_attention(rng: np.random.Generator, tiny: Tiny, block: int) -> Tensors:
    yield from _attention(rng, tiny, block, gate=2)
    yield f"blk.{block}.attn_q_norm.weight", _ones(tiny.head)
    yield f"blk.{block}.attn_k_norm.weight", _ones(tiny.head)
    yield f"blk.{block}.post_attention_norm.weight", _ones(EMBEDDING)


def _delta_net(rng: np.random.Generator, tiny: Tiny, block: int) -> Tensors:
    yield f"blk.{block}.attn_norm.weight", _ones(EMBEDDING)
    yield f"blk.{block}.attn_qkv.weight", _matrix(rng, tiny.conv_width, EMBEDDING)
    yield f"blk.{block}.attn_gate.weight", _matrix(rng, tiny.inner, EMBEDDING)
    yield f"blk.{block}.ssm_conv1d.weight", _matrix(rng, tiny.conv_width, tiny.conv_kernel).astype(np.float32)
    yield f"blk.{block}.ssm_dt.bias", _ones(tiny.value_heads)
    yield f"blk.{block}.ssm_a", -_ones(tiny.value_heads)
    yield f"blk.{block}.ssm_beta.weight", _matrix(rng, tiny.value_heads, EMBEDDING)
    yield f"blk.{block}.ssm_alpha.weight", _matrix(rng, tiny.value_heads, EMBEDDING)
    yield f"blk.{block}.ssm_norm.weight", _ones(tiny.state)
    yield f"blk.{block}.ssm_out.weight", _silent(EMBEDDING, tiny.inner)
    yield f"blk.{block}.post_attention_norm.weight", _ones(EMBEDDING)


def _mtp_head(block: int) -> Tensors:
    """Passes the newest token's embedding on and ignores the hidden row: its guess is the next word."""
    pick = np.zeros((EMBEDDING, 2 * EMBEDDING), np.float16)
    pick[np.arange(EMBEDDING), np.arange(EMBEDDING)] = 1
    yield f"blk.{block}.nextn.eh_proj.weight", pick
    yield f"blk.{block}.nextn.enorm.weight", _ones(EMBEDDING)
    yield f"blk.{block}.nextn.hnorm.weight", _ones(EMBEDDING)
    yield f"blk.{block}.nextn.shared_head_norm.weight", _ones(EMBEDDING)


def _tensors(tiny: Tiny) -> Tensors:
    rng = np.random.default_rng(7)
    output = np.zeros((EMBEDDING, EMBEDDING), np.float16)
    for token, follows in enumerate(_next_tokens()):
        output[follows, token] = SHARPNESS
    yield "token_embd.weight", np.eye(EMBEDDING, dtype=np.float16)
    yield "output_norm.weight", _ones(EMBEDDING)
    yield "output.weight", output
    for block in range(tiny.blocks + tiny.mtp):
        if tiny.architecture != "qwen35":
            yield from _attention(rng, tiny, block, gate=1)
            yield f"blk.{block}.ffn_norm.weight", _ones(EMBEDDING)
        elif block >= tiny.blocks or block % 4 == 3:
            yield from _gated_attention(rng, tiny, block)
        else:
            yield from _delta_net(rng, tiny, block)
        yield from _feed_forward(rng, tiny, block)
        if block >= tiny.blocks:
            yield from _mtp_head(block)


def write(path: Path, tiny: Tiny | None = None) -> Path:
    """Write a tiny model and return its path; by default a qwen35 with an MTP head."""
    tiny = tiny or Tiny()
    writer = gguf.GGUFWriter(path, tiny.architecture)
    _metadata(writer, tiny)
    for name, data in _tensors(tiny):
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_qwen35(path: Path) -> Path:
    """A hybrid with Gated DeltaNet, one full-attention layer in four, and an MTP head."""
    return write(path)


def write_llama(path: Path) -> Path:
    """A plain llama."""
    return write(path, Tiny(architecture="llama", mtp=0))


if __name__ == "__main__":
    {"qwen35": write_qwen35, "llama": write_llama}[sys.argv[1]](Path(sys.argv[2]))
