import { describe, expect, it } from 'vitest';
import { AppError, type Problem } from '../../../src/base/errors.ts';
import { editText } from '../../../src/cli/edit-text.ts';

/** Edits a text with an editor that makes these changes, one at each start. */
async function edit(
  text: string,
  changes: readonly ((opened: string) => string)[],
  {
    validate = async () => [],
    env = {},
    exitCode = 0,
  }: { validate?: (text: string) => Promise<readonly Problem[]>; env?: object; exitCode?: number } = {},
) {
  const opened: string[] = [];
  const editors: string[] = [];
  const files = new Map<string, { readonly text: string; readonly isPrivate: boolean }>();
  let removed = 0;
  const ports = {
    env: { ...env },
    input: { readText: async (path: string) => files.get(path)?.text ?? '' } as never,
    writeLocalFile: async (path: string, content: string, { isPrivate = false } = {}) => void files.set(path, { text: content, isPrivate }),
    makeTemporaryDirectory: async () => '/tmp/edit',
    removeTemporaryDirectory: async () => void removed++,
    runEditor: async (editor: string, path: string) => {
      editors.push(editor);
      const before = files.get(path);
      opened.push(before?.text ?? '');
      files.set(path, {
        isPrivate: before?.isPrivate === true,
        text: (changes[opened.length - 1] ?? ((same) => same))(before?.text ?? ''),
      });
      return exitCode;
    },
  };
  const end = await editText(ports, { text, name: 'a/b.yaml', notes: ['about b'], validate }).catch((error: unknown) => error);
  return { end, opened, editors, files, removed };
}

const invalid: Problem = { code: 'BAD', message: 'must be positive', position: { file: 'f', line: 2, column: 3 }, path: 'maxPods' };

describe('editText', () => {
  it('returns the text without the header, which is not part of it, from a private file', async () => {
    const { end, opened, editors, files } = await edit('# mine\na: 1\n', [(text) => text.replace('a: 1', 'a: 2')]);
    expect(end).toMatchObject({ text: '# mine\na: 2\n' });
    expect(opened[0]).toMatch(/^#\| Edit the text below[^\n]*\n#\| If[^\n]*\n#\| about b\n# mine\na: 1\n$/);
    expect([[...files].map(([path, { isPrivate }]) => [path, isPrivate]), editors]).toEqual([[['/tmp/edit/a_b.yaml', true]], ['vi']]);
  });

  it('keeps lines of the text that begin like those of the header', async () => {
    const { end, opened } = await edit('#| mine\na: 1\n', [(text) => text.replace('a: 1', 'a: 2')]);
    expect(end).toMatchObject({ text: '#| mine\na: 2\n' });
    expect(opened[0]).toContain('#|| Edit the text below');
    expect((await edit('#| mine\na: 1\n', [])).end).toBeNull();
  });

  it.each([
    [{ KUBE_EDITOR: 'code --wait', EDITOR: 'nano' }, 'code --wait'],
    [{ KUBE_EDITOR: ' ', EDITOR: 'nano' }, 'nano'],
  ])('runs the editor of %j', async (env, editor) => expect((await edit('a', [], { env })).editors).toEqual([editor]));

  it.each([
    ['unchanged', (text: string) => text],
    ['empty', () => '#| x\n\n'],
  ])('is cancelled if the text is %s', async (_, change) => {
    const { end, removed } = await edit('a: 1\n', [change]);
    expect([end, removed]).toEqual([null, 1]);
  });

  it('opens an invalid text again, with the errors at the lines of the file', async () => {
    const validate = async (text: string) => (text.includes('-1') ? [invalid] : []);
    const { end, opened } = await edit('x: 0\na: 1\n', [(text) => text.replace('a: 1', 'a: -1'), (text) => text.replace('-1', '5')], {
      validate,
    });
    expect(end).toMatchObject({ text: 'x: 0\na: 5\n' });
    const [, place = ''] = /^#\| {3}(\d+):3 maxPods: must be positive \[BAD\]$/m.exec(opened[1] ?? '') ?? [];
    expect((opened[1] ?? '').split('\n')[Number(place) - 1]).toBe('a: -1');
  });

  it('gives up if an invalid text is saved without a change, and names the file that keeps it', async () => {
    const { end, removed } = await edit('a: 1\n', [(text) => text.replace('a: 1', 'a: -1')], { validate: async () => [invalid] });
    expect([end, removed]).toEqual([expect.any(AppError), 0]);
    expect((end as AppError).exitCode).toBe(2);
    expect((end as AppError).problems[0]?.hint).toBe('The edited text is kept in /tmp/edit/a_b.yaml');
  });

  it.each([
    [127, 'was not found'],
    [1, 'failed with exit code 1'],
  ])('refuses an editor that ends with %i', async (exitCode, text) => {
    const { end, removed } = await edit('a: 1\n', [], { exitCode });
    expect([(end as AppError).message, removed]).toEqual([expect.stringContaining(`the editor "vi" ${text}: nothing was changed`), 1]);
  });
});
