// npm run build: builds the program as JavaScript that requires only Node.js.
//
//   dist/kubeletadm.mjs         loads the modules of a command from dist/chunks, so that it starts quickly
//   dist/kubeletadm-agent.mjs   only agent and controller, in one file, which is installed on hosts
//   DIR/main.cjs                with --sea DIR: the whole program in one file, for the executable, see build-sea.mjs
//
// Node's compile cache is disabled: its default place is the temporary directory, where other users could
// create code that root then executes.
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import Handlebars from 'handlebars';
import { noticesComment, RULE, section, thirdPartyNotices } from './third-party-notices.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const chunks = join(dist, 'chunks');

/** The precompiled templates replace the module that reads and compiles them. */
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
      const { text, html } = JSON.parse(await readFile(join(root, 'src/template-options.json'), 'utf8'));
      const optionsOf = (path) => (path.endsWith('.html.hbs') ? html : text);
      const compiled = async (path) =>
        `[${JSON.stringify(name(path))}, Handlebars.template(${Handlebars.precompile(await readFile(path, 'utf8'), optionsOf(path))})]`;
      const templatesByPath = await Promise.all(paths.sort().map(compiled));
      const contents = `import Handlebars from 'handlebars/runtime.js';
const templates = new Map([${templatesByPath.join(',\n')}]);
export const loadTemplates = async () => templates;`;
      return { contents, loader: 'js', resolveDir: root };
    });
  },
};

/** The texts of the pages replace the module that reads them from docs. */
const problemPages = {
  name: 'problem-pages',
  setup(context) {
    context.onLoad({ filter: /[/\\]src[/\\]problem-pages\.ts$/ }, async () => {
      const names = (await readdir(join(root, 'docs'))).filter((name) => /^(?:troubleshooting|problems-.*)\.md$/.test(name)).sort();
      const pages = await Promise.all(names.map(async (name) => ({ name, text: await readFile(join(root, 'docs', name), 'utf8') })));
      return { contents: `export const loadProblemPages = async () => ${JSON.stringify(pages)};`, loader: 'js' };
    });
  },
};

/** JSON.parse reads the data in a fraction of the time that the engine needs for the same object literals. */
const catalogueData = {
  name: 'catalogue-data',
  setup(context) {
    context.onLoad({ filter: /[/\\]src[/\\]kubelet[/\\]catalogue[/\\]data[/\\].*\.json$/ }, async ({ path }) => {
      const text = JSON.stringify(JSON.parse(await readFile(path, 'utf8')));
      return { contents: `export default JSON.parse(${JSON.stringify(text)});`, loader: 'js' };
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

const common = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  legalComments: 'none',
  write: false,
  metafile: true,
  absWorkingDir: root,
  plugins: [templates, problemPages, catalogueData, optionalModules],
  alias: {
    // The package's own build for bundlers. That for Node.js reads two variables of the environment for each token
    // (LOG_TOKENS, LOG_STREAM): this is slow, and with the variables set the tokens appear among the results.
    yaml: join(root, 'node_modules/yaml/browser/index.js'),
    // node-fetch prefers the URL of Node.js to the one of this package, which contains a table of 260 kB.
    'whatwg-url': 'node:url',
  },
  logLevel: 'warning',
};
/** Small, with the names of functions and classes as properties: ssh2 compares names, and stacks show them. */
const smallest = { minify: true, keepNames: true };
/** Starts faster: names stay as they are, and need no properties. */
const fastest = { minifyWhitespace: true, minifySyntax: true };
/** Module variables that CommonJS packages expect. */
const COMMONJS =
  "import{createRequire as $require}from'node:module';const require=$require(import.meta.url),__dirname=import.meta.dirname,__filename=import.meta.filename;";
/**
 * The second line distinguishes the two programs, see src/host/adapters/large-file.ts.
 * @param kind the text of that line
 * @param more further lines of each file
 */
const esm = (kind, more = '') => ({
  format: 'esm',
  banner: { js: `// ${kind}${more}` },
});

const split = await build({
  ...common,
  ...fastest,
  ...esm('kubeletadm, in several files'),
  entryPoints: { kubeletadm: join(root, 'src/bin.ts') },
  splitting: true,
  outdir: dist,
  chunkNames: 'chunks/[name]-[hash]',
  outExtension: { '.js': '.mjs' },
});
const notices = await writeNotices(split.metafile);
const agent = await build({
  ...common,
  ...smallest,
  ...esm('kubeletadm agent, in one file', `\n${COMMONJS}`),
  footer: { js: noticesComment(notices) },
  entryPoints: [join(root, 'src/agent-bin.ts')],
  outfile: join(dist, 'kubeletadm-agent.mjs'),
});
for (const { metafile } of [split, agent]) refuseOutsideModules(metafile);

await mkdir(chunks, { recursive: true });
const isEntry = ({ path }) => dirname(path) === dist;
const outputs = [...split.outputFiles, ...agent.outputFiles];
// The entry files are written last: tests may start the program during another build.
for (const file of [...outputs.filter((each) => !isEntry(each)), ...outputs.filter(isEntry)])
  await put(file.path, withModuleVariables(file));
const current = new Set(split.outputFiles.map(({ path }) => basename(path)));
for (const name of await readdir(chunks)) if (!current.has(name)) await rm(join(chunks, name));

const { values: options } = parseArgs({ options: { sea: { type: 'string' }, report: { type: 'boolean' } } });
if (options.sea !== undefined) {
  const sea = await build({
    ...common,
    ...smallest,
    entryPoints: [join(root, 'src/bin.ts')],
    format: 'cjs',
    // The script of an executable can load Node's own modules by require only.
    supported: { 'dynamic-import': false },
    outfile: join(options.sea, 'main.cjs'),
  });
  refuseOutsideModules(sea.metafile);
  await mkdir(options.sea, { recursive: true });
  for (const { path, contents } of sea.outputFiles) await writeFile(path, contents);
  await writeFile(join(options.sea, 'notices'), notices);
}
if (options.report) {
  const inputs = Object.values(agent.metafile.outputs).flatMap(({ inputs: each }) => Object.entries(each));
  for (const [path, { bytesInOutput }] of inputs.sort((a, b) => b[1].bytesInOutput - a[1].bytesInOutput).slice(0, 25))
    console.log(String(bytesInOutput).padStart(9), path);
}
const megabytes = (files) => (files.reduce((sum, { contents }) => sum + contents.length, 0) / 1e6).toFixed(2);
console.log(`dist/kubeletadm.mjs ${megabytes(split.outputFiles)} MB in ${split.outputFiles.length} files`);
console.log(`dist/kubeletadm-agent.mjs ${megabytes(agent.outputFiles)} MB`);

/** Most files in chunks use no module variable of CommonJS, and making them takes a part of the start of a command. */
function withModuleVariables({ path, contents, text }) {
  return dirname(path) === chunks && /\b(?:require|__dirname|__filename)\b/.test(text) ? `${COMMONJS}\n${text}` : contents;
}

/** Renamed when it is complete: no reader ever finds half a file. */
async function put(path, contents) {
  await writeFile(`${path}.new`, contents);
  await chmod(`${path}.new`, dirname(path) === dist ? 0o755 : 0o644);
  await rename(`${path}.new`, path);
}

/** Writes the licences of all bundled packages, and returns the program's own licence followed by them. */
async function writeNotices({ inputs }) {
  const thirdParty = thirdPartyNotices(root, Object.keys(inputs));
  const { name, version, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const own = section(`${name} ${version} (${license})`, (await readFile(join(root, 'LICENSE'), 'utf8')).trim());
  await mkdir(dist, { recursive: true });
  await writeFile(join(dist, 'THIRD-PARTY-NOTICES.txt'), thirdParty);
  return own + RULE + thirdParty;
}

/** The program must load no module from node_modules or NODE_PATH. */
function refuseOutsideModules({ inputs }) {
  const outside = Object.entries(inputs).flatMap(([file, { imports }]) =>
    imports
      .filter(({ external, path }) => external && path !== '<runtime>' && !isBuiltin(path))
      .map(({ path }) => `${path} (asked for by ${file})`),
  );
  if (outside.length > 0)
    throw new Error(`modules outside the program: ${outside.join(', ')}. Add them to optionalModules, or install them`);
}
