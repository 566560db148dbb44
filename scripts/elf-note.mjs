// Adds data to an executable as a note that its program finds in memory. 64-bit ELF, little-endian.
//
// The program header table has no room for another entry, so it moves to the end of the file, into a new
// segment that also contains the note. Kernels before 5.18 compute the address of the table from the address
// of the first segment and the file offset: so the new segment keeps the same distance between the two.
// @see elf(5)

const [PT_LOAD, PT_NOTE, PT_PHDR] = [1, 4, 6];
const [READ, PAGE, HEADER_BYTES] = [4, 0x10000n, 56];
const MACHINES = { 62: 'x64', 183: 'arm64' };

/** The architecture of an executable as Node.js names it; null for any other. */
export function machineOf(file) {
  const isElf = file.toString('latin1', 0, 6) === '\x7fELF\x02\x01';
  return isElf ? (MACHINES[file.readUInt16LE(18)] ?? null) : null;
}

/** The executable with an additional note of that name, and without sections that are not loaded (as by strip(1)). */
export function addNote(whole, name, data) {
  const headers = readHeaders(whole);
  const loads = headers.filter(({ type }) => type === PT_LOAD);
  const file = whole.subarray(0, Number(loads.reduce((most, { offset, filesz }) => (offset + filesz > most ? offset + filesz : most), 0n)));
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
  // Loadable segments must be in the order of their addresses.
  const lastLoad = moved.findLastIndex(({ type }) => type === PT_LOAD);
  const all = [...moved.slice(0, lastLoad + 1), segment, ...moved.slice(lastLoad + 1), noteHeader];
  const made = Buffer.alloc(Number(offset + size));
  file.copy(made);
  made.writeBigUInt64LE(offset, 32);
  // No section table: it describes debugging information and symbols, a seventh of the file.
  made.writeBigUInt64LE(0n, 40);
  made.fill(0, 58, 64);
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
