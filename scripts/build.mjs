// Builds dist/kubeletadm.mjs: the whole program in one file that needs only Node.js.
//
// esbuild splits the program at its lazy imports. Node.js would have to parse one big module completely
// before it runs any part of it. Therefore the file contains the parts that every start needs as functions,
// and the others as compressed text that is evaluated on first use.
import { chmod, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { basename, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { build, transform } from 'esbuild';
import { noticesComment, RULE, section, thirdPartyNotices } from './third-party-notices.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'dist/kubeletadm.mjs');
/** Parts above this size are compressed individually. */
const COMPRESS_ABOVE = 2_000;
const compress = (code) =>
  brotliCompressSync(Buffer.from(code), { params: { [constants.BROTLI_PARAM_SIZE_HINT]: code.length } }).toString('base64');

/** The texts of templates replace the module that reads them from disk. */
const templates = {
  name: 'templates',
  setup(context) {
    context.onLoad({ filter: /[/\\]src[/\\]template-files\.ts$/ }, async () => {
      const folder = join(root, 'templates');
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      const paths = entries
        .filter((entry) => entry.isFile() && entry.name.endsWith('.hbs'))
        .map((entry) => join(entry.parentPath, entry.name));
      const name = (path) =>
        relative(folder, path)
          .split(sep)
          .join('/')
          .replace(/\.hbs$/, '');
      const texts = await Promise.all(paths.sort().map(async (path) => [name(path), await readFile(path, 'utf8')]));
      return { contents: `export const loadTemplates = async () => new Map(${JSON.stringify(texts)});`, loader: 'js' };
    });
  },
};

/**
 * Commander starts subprocesses only for commands that are separate programs; loading child_process would
 * slow every start.
 */
const commander = {
  name: 'commander',
  setup(context) {
    context.onLoad({ filter: /[/\\]commander[/\\]lib[/\\]command\.js$/ }, async ({ path }) => {
      const eagerly = "const childProcess = require('node:child_process');";
      const source = await readFile(path, 'utf8');
      if (!source.includes(eagerly)) throw new Error(`${path} loads node:child_process in another way now`);
      const lazily = "const childProcess = { get spawn() { return require('node:child_process').spawn; } };";
      return { contents: source.replace(eagerly, lazily), loader: 'js' };
    });
  },
};

/**
 * Optional modules of dependencies, which work without them. As external modules they would be looked up in
 * every node_modules above the program, and a user with write access to one could execute code. The bundle
 * contains a module instead that throws, as if they were not installed.
 */
const optionalModules = {
  name: 'optional-modules',
  setup(context) {
    const filter = /^(?:cpu-features|bufferutil|utf-8-validate|encoding|supports-color|.*\.node)$/;
    context.onResolve({ filter }, ({ path }) => ({ path, namespace: 'optional-module' }));
    context.onLoad({ filter: /.*/, namespace: 'optional-module' }, ({ path }) => ({
      contents: `throw Object.assign(new Error(${JSON.stringify(`${path} is not part of this program`)}), { code: 'MODULE_NOT_FOUND' });`,
      loader: 'js',
    }));
  },
};

const { outputFiles, metafile } = await build({
  entryPoints: [join(root, 'src/bin.ts')],
  bundle: true,
  splitting: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  minify: true,
  // ssh2 compares the names of its classes.
  keepNames: true,
  legalComments: 'none',
  write: false,
  outdir: join(root, 'dist/parts'),
  entryNames: 'entry',
  plugins: [templates, commander, optionalModules],
  define: { 'import.meta.url': '__url' },
  metafile: true,
  logLevel: 'warning',
});

const outside = Object.entries(metafile.inputs).flatMap(([file, { imports }]) =>
  imports
    .filter(({ external, path }) => external && path !== '<runtime>' && !isBuiltin(path))
    .map(({ path }) => `${path} (asked for by ${file})`),
);
if (outside.length > 0) throw new Error(`modules outside the program: ${outside.join(', ')}. Add them to optionalModules, or install them`);

const parts = await Promise.all(
  outputFiles.map(async ({ path, text }) => {
    const { code } = await transform(text.replace(/^#!.*\n/, ''), {
      format: 'cjs',
      platform: 'node',
      target: 'node20',
      minify: true,
      // import() of parts and of Node.js modules becomes require: compiled text has no module loader.
      supported: { 'dynamic-import': false },
    });
    return { name: basename(path), code };
  }),
);
/** The parts that every start evaluates: the entry and its static imports. */
const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));
const eager = new Set();
const visit = (name) => {
  if (eager.has(name) || !outputs.has(name)) return;
  eager.add(name);
  for (const { path, kind } of outputs.get(name).imports) if (kind === 'import-statement') visit(basename(path));
};
visit('entry.js');
const lazy = parts.filter(({ name }) => !eager.has(name));
/** Concatenated texts with the offset and the length of each. */
function concatenate(texts) {
  let at = 0;
  const places = texts.map((text) => {
    const place = [at, text.length];
    at += text.length;
    return place;
  });
  return { text: texts.join(''), places };
}
/** Small parts are compressed together: they are often used together. */
const small = lazy.filter(({ code }) => code.length <= COMPRESS_ABOVE);
const smallTexts = concatenate(small.map(({ code }) => code));
const large = lazy.filter(({ code }) => code.length > COMPRESS_ABOVE);
// Parts that no start needs are in a comment at the end, which is cheap to skip; they are read from the file
// on first use.
const { text: texts, places } = concatenate([compress(smallTexts.text), ...large.map(({ code }) => compress(code))]);
const table = JSON.stringify(large.map(({ name }, i) => [name, places[i + 1]]));
const smallTable = JSON.stringify(small.map(({ name }, i) => [name, smallTexts.places[i]]));
const functions = parts
  .filter(({ name }) => eager.has(name))
  .map(({ name, code }) => `${JSON.stringify(name)}:function(module,exports,require,__dirname,__filename){${code}\n}`)
  .join(',\n');
/**
 * The import of a part: through `node` for Node.js modules only, through `packed` for a part of the texts.
 */
const loader = `function node(name){
const own=process.getBuiltinModule(name);if(own)return own;
throw Object.assign(new Error('Cannot find module '+name),{code:'MODULE_NOT_FOUND'})}
const loaded=new Map,large=new Map(${table}),small=new Map(${smallTable}),parts={
${functions}};
let smallParts;
function unpack([at,length]){return node('node:zlib').brotliDecompressSync(Buffer.from(packed(at,at+length),'base64')).toString()}
function text(key){
if(large.has(key))return unpack(large.get(key));
if(!small.has(key))return null;
smallParts??=unpack(${JSON.stringify(places[0])});
const[at,length]=small.get(key);return smallParts.slice(at,at+length)}
function compile(key){
const code=text(key);
return code===null?null:node('node:vm').compileFunction(code,['module','exports','require','__dirname','__filename','__url'],{filename:'kubeletadm/'+key})}
function require(name){
const key=name.replace(/^\\.\\//,''),known=loaded.get(key);if(known)return known.exports;
const run=Object.hasOwn(parts,key)?parts[key]:compile(key);
if(run===null)return node(name);
const module={exports:{}};loaded.set(key,module);
run(module,module.exports,require,dirname,filename,__url);return module.exports}
require('entry.js');
`;
const thirdParty = thirdPartyNotices(root, Object.keys(metafile.inputs));
const { name, version, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
const own = section(`${name} ${version} (${license})`, (await readFile(join(root, 'LICENSE'), 'utf8')).trim());
const notices = own + RULE + thirdParty;
const program = `#!/usr/bin/env node
const __url=import.meta.url,dirname=import.meta.dirname,filename=import.meta.filename;
let comment='';
function packed(from,to){
if(comment===''){const file=node('node:fs').readFileSync(filename,'latin1');comment=file.slice(file.lastIndexOf('/'+'*')+2)}
return comment.slice(from,to)}
${loader}${noticesComment(notices)}/*${texts}*/
`;
if (process.argv.includes('--sea')) {
  // The same for an executable: a CommonJS script that loads its parts from an asset of the executable.
  const script = `{
const filename=process.execPath,dirname=node('node:path').dirname(filename),__url=node('node:url').pathToFileURL(filename).href;
let texts='';
function packed(from,to){texts||=node('node:sea').getAsset('parts','latin1');return texts.slice(from,to)}
${loader}}
`;
  await mkdir(join(root, 'dist/sea'), { recursive: true });
  await writeFile(join(root, 'dist/sea/main.cjs'), script);
  await writeFile(join(root, 'dist/sea/parts'), texts);
  await writeFile(join(root, 'dist/sea/notices'), notices);
}
await mkdir(join(root, 'dist'), { recursive: true });
// Renamed when complete: tests may start the program during another build.
await writeFile(`${out}.new`, program);
await chmod(`${out}.new`, 0o755);
await rename(`${out}.new`, out);
await writeFile(join(root, 'dist/THIRD-PARTY-NOTICES.txt'), thirdParty);
if (process.argv.includes('--report')) {
  for (const { name, code } of parts.toSorted((a, b) => b.code.length - a.code.length)) console.log(String(code.length).padStart(9), name);
  const inputs = Object.values(metafile.outputs).flatMap(({ inputs: each }) => Object.entries(each));
  for (const [path, { bytesInOutput }] of inputs.sort((a, b) => b[1].bytesInOutput - a[1].bytesInOutput).slice(0, 25))
    console.log(String(bytesInOutput).padStart(9), path);
}
console.log(`dist/kubeletadm.mjs ${(program.length / 1e6).toFixed(2)} MB in ${parts.length} parts`);
