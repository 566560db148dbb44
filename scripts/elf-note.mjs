// Puts data into an executable as a note that its own program finds in its memory. ELF of 64 bits, little-endian.
//
// The table of program headers has no room for more, so it moves to the end of the file, into a segment of its own, with the note behind it. Kernels before 5.18
// tell the program where its table is by the place of the first segment and the offset in the file alone: so the new segment has the same distance between the two.
// @see elf(5)

const [PT_LOAD, PT_NOTE, PT_PHDR] = [1, 4, 6];
const [READ, PAGE, HEADER_BYTES] = [4, 0x10000n, 56];
const MACHINES = { 62: 'x64', 183: 'arm64' };

/** What kind of machine an executable is for, as Node.js names it; null for what is none of those. */
export function machineOf(file) {
  const isElf = file.toString('latin1', 0, 6) === '\x7fELF\x02\x01';
  return isElf ? (MACHINES[file.readUInt16LE(18)] ?? null) : null;
}

/** The executable with one more note of that name. */
export function addNote(file, name, data) {
  const headers = readHeaders(file);
  const loads = headers.filter(({ type }) => type === PT_LOAD);
  const distance = loads[0].vaddr - loads[0].offset;
  const end = loads.reduce((most, { vaddr, memsz }) => (vaddr + memsz > most ? vaddr + memsz : most), 0n);
  const fileEnd = BigInt(file.length) + distance;
  const vaddr = alignUp(end > fileEnd ? end : fileEnd, PAGE);
  const offset = vaddr - distance;
  const note = noteOf(name, data);
  const tableBytes = alignUp(BigInt((headers.length + 2) * HEADER_BYTES), 16n);
  const size = tableBytes + BigInt(note.length);
  const segment = { type: PT_LOAD, flags: READ, offset, vaddr, paddr: vaddr, filesz: size, memsz: size, align: PAGE };
  const at = { offset: offset + tableBytes, vaddr: vaddr + tableBytes, paddr: vaddr + tableBytes };
  const noteHeader = { type: PT_NOTE, flags: READ, ...at, filesz: BigInt(note.length), memsz: BigInt(note.length), align: 4n };
  const moved = headers.map((header) =>
    header.type === PT_PHDR ? { ...header, offset, vaddr, paddr: vaddr, filesz: tableBytes, memsz: tableBytes } : header,
  );
  // Segments to be loaded stand in the order of their addresses.
  const lastLoad = moved.findLastIndex(({ type }) => type === PT_LOAD);
  const all = [...moved.slice(0, lastLoad + 1), segment, ...moved.slice(lastLoad + 1), noteHeader];
  const made = Buffer.alloc(Number(offset + size));
  file.copy(made);
  made.writeBigUInt64LE(offset, 32);
  made.writeUInt16LE(all.length, 56);
  for (const [i, header] of all.entries()) writeHeader(made, Number(offset) + i * HEADER_BYTES, header);
  note.copy(made, Number(at.offset));
  return made;
}

function noteOf(name, data) {
  const text = Buffer.alloc(Number(alignUp(BigInt(name.length + 1), 4n)));
  text.write(name, 'latin1');
  const head = Buffer.alloc(12);
  head.writeUInt32LE(name.length + 1, 0);
  head.writeUInt32LE(data.length, 4);
  const rest = Buffer.alloc(Number(alignUp(BigInt(data.length), 4n)) - data.length);
  return Buffer.concat([head, text, data, rest]);
}

function readHeaders(file) {
  const [start, bytes, count] = [Number(file.readBigUInt64LE(32)), file.readUInt16LE(54), file.readUInt16LE(56)];
  return Array.from({ length: count }, (_, i) => {
    const at = start + i * bytes;
    const big = (from) => file.readBigUInt64LE(at + from);
    const [offset, vaddr, paddr, filesz, memsz, align] = [8, 16, 24, 32, 40, 48].map(big);
    return { type: file.readUInt32LE(at), flags: file.readUInt32LE(at + 4), offset, vaddr, paddr, filesz, memsz, align };
  });
}

function writeHeader(file, at, { type, flags, offset, vaddr, paddr, filesz, memsz, align }) {
  file.writeUInt32LE(type, at);
  file.writeUInt32LE(flags, at + 4);
  for (const [i, value] of [offset, vaddr, paddr, filesz, memsz, align].entries()) file.writeBigUInt64LE(value, at + 8 + i * 8);
}

function alignUp(value, to) {
  return ((value + to - 1n) / to) * to;
}
