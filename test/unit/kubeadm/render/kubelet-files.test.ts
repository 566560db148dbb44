import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { renderTemplate, type Templates } from '../../../../src/codec/render-template.ts';
import { parseSource, type SourceNode, sourceToExactJson } from '../../../../src/codec/source.ts';
import { encodeYaml } from '../../../../src/codec/yaml-encode.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../../../../src/template-files.ts';

const catalogue = await loadCatalogue();
let templates: Templates;

beforeAll(async () => {
  templates = await loadTemplates();
});

/** Parses the file like kubelet and kubeadm. */
function read(content: string): unknown {
  const { documents, problems } = parseSource(content, 'f.yaml');
  expect(problems).toEqual([]);
  expect(documents).toHaveLength(1);
  return sourceToExactJson(documents[0]?.root as SourceNode);
}

const text = fc.oneof(
  fc.string().filter((value) => !value.includes('\ufffd')),
  fc.string({ unit: fc.constantFrom(...'ab01 -:#?\'"\n\t,[]{}&*!|>%@`.~yn_eE+') }),
);

describe('rendered files of a kubelet', () => {
  it('config.yaml parses to the original configuration', () => {
    const value = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 3 }, text, fc.integer(), fc.boolean(), fc.array(tie('value')), fc.dictionary(text, tie('value'))),
    })).value;
    const config = fc.dictionary(text, value, { minKeys: 1 }).map((json) => JSON.parse(JSON.stringify(json)) as Record<string, string>);
    fc.assert(
      fc.property(config, (desired) => {
        expect(read(encodeYaml(desired, catalogue.configurationType(36)))).toEqual(desired);
      }),
    );
  });

  it('instance-config.yaml parses to the original CRI socket', () => {
    fc.assert(
      fc.property(text, (criSocket) => {
        expect(read(String(renderTemplate(templates, '/var/lib/kubelet/instance-config.yaml', { criSocket })))).toEqual({
          containerRuntimeEndpoint: criSocket,
        });
      }),
    );
  });
});
