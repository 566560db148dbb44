import { remoteProgramContract } from '../contract/remote-program.ts';
import { ofThisProject, SHELLS } from '../support/shells.ts';

ofThisProject(SHELLS).forEach(remoteProgramContract);
