"""The vocabulary of simulated answers: common English words of at most six letters, so each is one token."""

_TEXT = """
    able about above accept across act active actual add after again age agree air all allow alone along also
    always amount animal answer any appear apple area arm around arrive art ask attack autumn away back bad bag
    ball bank bar base basic basket bear beat became bed before began behind bell below beside best better beyond
    big bird black blood blow blue board boat body bone book border born both bottle bottom bowl box boy branch
    bread break breath bridge bright bring broad broken brown build burn busy butter button buy cake call camera
    camp can canal candle car card care carry castle cat catch cause center chain chair chance change charge cheap
    check cheese child choice church circle city class clean clear clever clock close cloth cloud coal coast coat
    coffee cold color come common cook cool copper corn corner cost cotton cough could count county course cover
    cow create crop cross crowd cry cup curve cut daily damage dance danger dark day dead deal dear debate decide
    deep deer degree design desk detail dinner direct dish do doctor dog door double down draw dream dress drink
    drive drop dry dust duty each ear early earth east easy eat edge effect egg eight either empty end engine
    enough enter equal escape even event ever every exact except expect eye face fact factor fair fall family far
    farm fast father favor fear feel fence few field fight figure fill final find finger fire first fish fit five
    flag flat flight floor flow flower fly fold follow food foot force forest form forty four free fresh friend
    from front fruit full fun future game garden gate gather gave gentle get gift girl give glass go goat gold
    good grain grand grass gray great green ground group grow guess guide habit hair half hall hammer hand happen
    happy harbor hard hat have head health hear heart heat heavy help her hide high hill hold hole home honey hope
    horse hotel hour house how huge human hunger hunt hurry ice idea inch indeed ink inside iron island job join
    joke judge jump just keep key kick kind king kiss knee knife knot know labor lady lake lamp land large last
    late laugh law lead leaf learn least leave left leg lemon less lesson let letter level lift light like limit
    line lion liquid list listen little live local lock long look loose lose loud love low lucky lunch
    mail main make man manner many map mark market mass master match matter may meal mean meat medium meet memory
    metal method middle might mile milk mind minor minute mirror moment money month moon more most mother motion
    mount mouth move much muscle music must name narrow nation nature near neat neck need needle nerve net never
    new news next night nine noise normal north nose note notice now number nut object ocean offer office often
    oil old once one only open orange order other our out oven over owner page pain paint paper parcel parent part
    party pass past path pay peace pen pencil people pepper period person piano pick piece pig pipe place plain
    plane plant plate play please plenty plow pocket point poison police polish poor port potato powder power
    press pretty price print prison profit proper public pull pump pure purple push put quick quiet quite rabbit
    rail rain raise range rate rather raw reach read ready reason record red region relief repair reply rest
    result return rhythm rice rich ride right ring rise river road rock roll roof room root rope rough round route
    rule run sad safe sail salt same sand save say scale school screen sea season seat second secret see seed seem
    self sell send sense series serve set seven shade shake shape share sharp sheep shelf ship shirt shoe shop
    short should show shut sick side sign silk silver simple since sister size skin skirt sky sleep slip slow
    small smart smell smile smoke smooth snake snow so soap social soft soil some son song soon sort sound soup
    south space speak speed spend spoon spring square stage stamp stand star start state stay steam steel stem
    step stick still stone stop store storm story street strong summer sun supply sure swim system table tail take
    talk tall taste tax teach ten test than thank that the them then theory there thick thin thing think third
    this those three thread throat throw thumb ticket tie tiger till time tin tired toe today tongue too tooth top
    total touch toward town trade train tree trick trust try turn twelve twenty twist two under unit until up
    upon use usual valley value verb very vessel view voice vowel wage wagon wait walk wall want war warm wash
    waste watch water wave wax way we wear week weight well west wet wheel when where which while white who whole
    wide wild will win wind window wine wing winter wire wise wish with woman wonder wood wool word work world
    would wound write wrong yard year yellow yes yet you young zero
"""

WORDS: tuple[str, ...] = tuple(_TEXT.split())
