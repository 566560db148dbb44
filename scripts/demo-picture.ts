// npm run demo-picture: plays the demo (npm start), and writes docs/images/demo.svg, an animation of its output with the
// pauses of the real run, shortened. Only the name of the temporary directory is shortened, and long lines are wrapped.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILE = join(ROOT, 'docs/images/demo.svg');
const [COLUMNS, ROWS] = [122, 30];
const [CHARACTER, LINE, MARGIN] = [7.22, 17, 14];
/** Pauses of the run are not longer than this in the picture, and the last lines are shown for a while. */
const [LONGEST_PAUSE_MS, LAST_MS] = [900, 8_000];
/** A line with its time; the demo prints the lines of a command at once. */
const LEAST_PAUSE_MS = 60;
/** Colours of SGR codes on a dark background. */
const COLOURS: Readonly<Record<string, string>> = { '31': 'r', '32': 'g', '33': 'y', '36': 'c', '1': 'b', '2': 'd' };

interface TimedLine {
  readonly atMs: number;
  readonly text: string;
}

async function playDemo(): Promise<readonly TimedLine[]> {
  const argv = ['--import', 'tsx', join(ROOT, 'src/bin.ts'), 'lab', '--demo', '--color', 'always'];
  const child = spawn(process.execPath, argv, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  const [lines, startedAt]: [TimedLine[], number] = [[], Date.now()];
  let rest = '';
  const read = (chunk: Buffer): void => {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    for (const text of parts) lines.push({ atMs: Date.now() - startedAt, text: text.replace(/(\/tmp\/kubeletadm-demo)-\w+/g, '$1') });
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`the demo ended with exit code ${code}`);
  return lines;
}

/** The parts of a line with their SGR codes, as rows of the terminal. */
function rowsOf(text: string): readonly (readonly { readonly style: string; readonly text: string }[])[] {
  const rows: { style: string; text: string }[][] = [[]];
  let [style, column] = ['', 0];
  for (const [index, part] of text.split(/\u001b\[([\d;]*)m/).entries()) {
    if (index % 2 === 1) {
      style = COLOURS[part] ?? '';
      continue;
    }
    for (let left = part; left !== ''; ) {
      if (column === COLUMNS) [column] = [0, rows.push([])];
      const fits = left.slice(0, COLUMNS - column);
      const space = fits.length < left.length ? fits.lastIndexOf(' ') : -1;
      const piece = space < 0 ? fits : fits.slice(0, space + 1);
      rows.at(-1)?.push({ style, text: piece });
      column = piece.length < fits.length ? COLUMNS : column + piece.length;
      left = left.slice(piece.length);
    }
  }
  return rows;
}

function escapeXml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

/** An animation that shows each row at its time, and scrolls as a terminal does. Without motion, it shows the last rows. */
function renderSvg(lines: readonly TimedLine[]): string {
  let [at, before] = [0, 0];
  const rows = lines.flatMap(({ atMs, text }) => {
    at += Math.min(Math.max(atMs - before, LEAST_PAUSE_MS), LONGEST_PAUSE_MS);
    before = atMs;
    return rowsOf(text).map((parts) => ({ at, parts }));
  });
  const total = at + LAST_MS;
  const percent = (ms: number): string => ((ms / total) * 100).toFixed(2);
  const steps = rows.flatMap(({ at: shownAt }, i) =>
    i < ROWS ? [] : [`${percent(shownAt)}%{transform:translateY(${-(i + 1 - ROWS) * LINE}px)}`],
  );
  const [width, height] = [Math.ceil(COLUMNS * CHARACTER) + 2 * MARGIN, ROWS * LINE + 2 * MARGIN];
  const texts = rows.map(({ at: shownAt, parts }, i) => {
    const spans = parts.map(({ style, text }) => (style === '' ? escapeXml(text) : `<tspan class="${style}">${escapeXml(text)}</tspan>`));
    return `<text y="${MARGIN + (i + 0.75) * LINE}" style="animation-delay:${(shownAt / 1000).toFixed(2)}s">${spans.join('')}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The demo of kubeletadm in a terminal">
<style>
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3;white-space:pre}
.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}.c{fill:#79c0ff}.b{font-weight:700}.d{fill:#9da7b3}
#rows{transform:translateY(${-Math.max(0, rows.length - ROWS) * LINE}px)}
@media (prefers-reduced-motion:no-preference){
#rows{animation:scroll ${total}ms step-end infinite}
#rows text{opacity:0;animation:show 1ms forwards}
@keyframes show{to{opacity:1}}
@keyframes scroll{0%{transform:none}${steps.join('')}}
}
</style>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<svg x="${MARGIN}" width="${width - MARGIN}" height="${height}"><g id="rows">
${texts.join('\n')}
</g></svg>
</svg>
`;
}

const lines = await playDemo();
mkdirSync(join(ROOT, 'docs/images'), { recursive: true });
writeFileSync(FILE, renderSvg(lines));
process.stdout.write(`wrote ${FILE}: ${lines.length} lines\n`);
